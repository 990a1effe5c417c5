package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/evidence"
)

func reportCommand(env Env) *cobra.Command {
	var browse bool
	c := &cobra.Command{
		Use:   "report [DIR|RECORD]",
		Short: "Write the report of a run from its record and print the account",
		Long: `Report writes report.html beside a run record, as a run does at its end, and prints the plain account. The page shows the
change as text where proctor-change.json lies beside the record. Without an argument it takes the newest run of this machine.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := chosenRun(env, args, evidence.RecordFile)
			if err != nil {
				return err
			}
			return report(cmd.Context(), env, file, browse)
		},
	}
	c.Flags().BoolVar(&browse, "open", false, "show the report in the browser")
	return c
}

func report(ctx context.Context, env Env, file string, browse bool) error {
	rec, err := evidence.Read(file)
	if err != nil && !errors.Is(err, evidence.ErrInvalid) {
		return err
	}
	if err != nil {
		// A flawed account is worth more than none, and nobody may take it for a good one.
		rec.Notes = append(rec.Notes, err.Error())
	}
	dir := filepath.Dir(file)
	if err := evidence.WriteReport(dir, rec); err != nil {
		return fmt.Errorf("%w. Next: copy the record to a directory that you may write", err)
	}
	fmt.Fprint(env.Stdout, evidence.Plain(rec, dir))
	if !browse {
		return nil
	}
	return openPage(ctx, env, filepath.Join(dir, evidence.ReportFile))
}

// openPage hands a file to the desktop's own opener.
func openPage(ctx context.Context, env Env, page string) error {
	for _, opener := range []string{"xdg-open", "open"} {
		for _, dir := range filepath.SplitList(env.Getenv("PATH")) {
			if info, err := os.Stat(filepath.Join(dir, opener)); err != nil || info.IsDir() || !filepath.IsAbs(dir) {
				continue
			}
			if err := exec.CommandContext(ctx, filepath.Join(dir, opener), page).Run(); err != nil {
				return fmt.Errorf("show %s with %s: %w", page, opener, err)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no xdg-open or open in PATH. Next: open %s by hand", page)
}

func watchCommand(env Env, code *int) *cobra.Command {
	return &cobra.Command{
		Use:   "watch [DIR]",
		Short: "Follow a run as it happens",
		Long: `Watch tells the events of a run's directory as they are written, until the run has ended; it then exits with the run's own
exit code. A run that is over is told at once. Without an argument it takes the newest run of this machine.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := chosenRun(env, args, evidence.EventsFile)
			if err != nil {
				return err
			}
			*code, err = follow(cmd.Context(), env, file)
			return err
		},
	}
}

// watchEvery is how often the end of the event log is looked at.
const watchEvery = 100 * time.Millisecond

// follow tells events until the last one, or until the person has seen enough.
func follow(ctx context.Context, env Env, file string) (int, error) {
	view := newAccount(env.Stdout, env.Terminal, env.Now)
	stop := spinning(view)
	defer stop()
	code := 0
	wait := func(c context.Context) error { return env.Sleep(c, watchEvery) }
	for e, err := range evidence.Tail(ctx, file, wait) {
		switch {
		case ctx.Err() != nil:
			return 130, nil
		case errors.Is(err, fs.ErrNotExist):
			return exitUsage, err
		case err != nil:
			view.say("an event could not be read: %v", err)
			continue
		}
		view.Event(e)
		if e.Kind == evidence.Ended {
			code = int(e.Int(evidence.KeyExitCode))
		}
	}
	return code, nil
}

// chosenRun is the file of that name in the run that args name, or in the newest run of this machine.
func chosenRun(env Env, args []string, name string) (string, error) {
	if len(args) == 1 {
		path := args[0]
		if !filepath.IsAbs(path) {
			path = filepath.Join(env.Dir, path)
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("%w. Next: give the directory of a run, which holds %s", err, name)
		}
		if info.IsDir() {
			path = filepath.Join(path, name)
		}
		return path, nil
	}
	runs := filepath.Join(stateDir(env), "runs")
	files, err := filepath.Glob(filepath.Join(runs, "*", name))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("there is no run below %s yet. Next: give the directory of a run, which holds %s", runs, name)
	}
	// The directories are named by the time at which their run began.
	return slices.Max(files), nil
}
