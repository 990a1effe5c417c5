package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/detect"
)

func configCommand(env Env) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Explain and check the configuration"}
	c.AddCommand(
		&cobra.Command{
			Use: "explain [KEY]", Short: "Say what a key means, its type and its default; without a key list them all", Args: cobra.MaximumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				if len(args) == 0 {
					fmt.Fprintln(env.Stdout, strings.Join(config.Keys(), "\n"))
					return nil
				}
				text, err := config.Explain(args[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(env.Stdout, strings.TrimRight(text, "\n"))
				return nil
			},
		},
		&cobra.Command{
			Use: "schema", Short: "Print the JSON Schema of the configuration file", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				_, err := env.Stdout.Write(config.Schema())
				return err
			},
		},
		&cobra.Command{
			Use: "check [FILE]", Short: "Load a configuration file and say what is wrong with it", Args: cobra.MaximumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return checkConfig(env, args) },
		},
		showConfigCommand(env),
	)
	return c
}

func checkConfig(env Env, args []string) error {
	name, data, err := configFile(env, args)
	switch {
	case err != nil:
		return err
	case name == "":
		return errors.New("there is no configuration in this repository. Next: proctor init")
	}
	if _, err := config.Load(name, data); err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "%s is right\n", name)
	return nil
}

// configFile reads the file that was named, or the one of the checkout; none at all is no error.
func configFile(env Env, args []string) (name string, data []byte, err error) {
	if len(args) == 1 {
		data, err = os.ReadFile(args[0])
		return args[0], data, err
	}
	top, err := checkoutOf(env.Dir)
	if err != nil {
		return "", nil, err
	}
	return config.Find(func(p string) ([]byte, error) { return os.ReadFile(filepath.Join(top, filepath.FromSlash(p))) })
}

func showConfigCommand(env Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show [FILE]", Short: "Print every value in force and where it comes from: default, file and line, what was detected, or an input", Args: cobra.MaximumNArgs(1),
		Long: `Show prints every key of the configuration with its value and its origin, those that are not defaults first. The inputs of a
job count as in a run: PROCTOR_MAX_TICKS, PROCTOR_MAX_COST_USD, PROCTOR_MAX_DURATION, PROCTOR_AGENT and PROCTOR_MODEL in the
environment (in GitHub Actions INPUT_MAX-TICKS and so on) narrow the file. A run reads the file of the base commit; this command reads the one that lies here.`,
		RunE: func(_ *cobra.Command, args []string) error { return showConfig(env, args, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array of {key, value, from}")
	return c
}

func showConfig(env Env, args []string, asJSON bool) error {
	name, data, err := configFile(env, args)
	if err != nil {
		return err
	}
	cfg, origins, err := config.Origins(name, data)
	if err != nil {
		return err
	}
	if name == "" {
		top, err := checkoutOf(env.Dir)
		if err != nil {
			return err
		}
		cfg, _ = detect.Detect(os.DirFS(top)).Config()
		origins = config.Renew(origins, cfg, "detected in the repository")
	}
	over, err := overrides(environInput(env.Getenv))
	if err != nil {
		return err
	}
	narrowed, _, err := config.Narrow(cfg, over)
	if err != nil {
		return err
	}
	origins = config.Renew(origins, narrowed, "input of the job")
	if asJSON {
		enc := json.NewEncoder(env.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(origins)
	}
	_, err = fmt.Fprint(env.Stdout, config.ShowText(origins))
	return err
}

// environInput reads inputs as either kind of job hands them over.
type environInput func(string) string

func (get environInput) Input(name string) string {
	upper := strings.ToUpper(name)
	return first(get("INPUT_"+upper), get("PROCTOR_"+strings.ReplaceAll(upper, "-", "_")))
}
