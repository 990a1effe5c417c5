// Command webhook hears a forge's deliveries and starts runs: on AWS Lambda, or as a plain HTTP server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/proctor-ci/proctor/internal/webhook"
)

func main() {
	for _, name := range strangers(os.Environ()) {
		fmt.Fprintf(os.Stderr, "webhook: %s is set and is no variable of the webhook's, so it does nothing here; webhook -h lists them\n", name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes: a usage or configuration error is 1, as for every command.
const (
	exitOK     = 0
	exitFailed = 1
)

type flags struct {
	listen, aside string
	check         bool
}

func (f *flags) set() *flag.FlagSet {
	fs := flag.NewFlagSet("webhook", flag.ContinueOnError)
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`address` to serve on; port 0 picks one")
	fs.BoolVar(&f.check, "check", false, "check the configuration, start nothing, and exit; SSM parameters are read")
	fs.StringVar(&f.aside, "set-aside", "", "`what` to do with the messages in PROCTOR_STORE that could not be worked on: list, or requeue")
	return fs
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	var f flags
	fs := f.set()
	fs.SetOutput(stderr)
	fs.Usage = func() { usage(stderr, fs) }
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitFailed
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "webhook: unexpected argument %q: it takes flags only, see webhook -h\n", fs.Arg(0))
		return exitFailed
	}
	e := env{getenv: getenv, readFile: os.ReadFile}
	var err error
	if f.aside != "" {
		err = setAside(e, f.aside, stdout)
	} else {
		err = start(ctx, e, f.listen, f.check, slog.New(slog.NewJSONHandler(stderr, nil)), stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "webhook:", err)
		return exitFailed
	}
	return exitOK
}

// start is the program behind its flags.
func start(ctx context.Context, e env, listen string, check bool, log *slog.Logger, stdout io.Writer) error {
	k, err := keep(e, check)
	if err != nil {
		return err
	}
	if k.file != nil {
		defer func() { _ = k.file.Close() }() // every change is on the disk already
	}
	onLambda := e.getenv("AWS_LAMBDA_RUNTIME_API") != ""
	if onLambda && len(e.parameterNames()) > 0 {
		// The init phase has no network: the secrets come with the first event.
		lazy := webhook.Lazy{Now: time.Now, Log: log, Load: loader(e, func(e env) (*webhook.Handler, error) { return build(e, k, log) })}
		lambda.StartWithOptions(lazy.Invoke, lambda.WithContext(ctx))
		return nil
	}
	if e, err = e.withParameters(ctx); err != nil {
		return err
	}
	h, err := build(e, k, log)
	switch {
	case err != nil:
		return err
	case check:
		fmt.Fprintln(stdout, "the configuration is complete; whether the forge takes it, the first delivery shows")
		return nil
	case onLambda:
		// It ends with the process.
		lambda.StartWithOptions(h.Invoke, lambda.WithContext(ctx))
		return nil
	}
	return serve(ctx, listen, h, k, log, stdout)
}

// Limits of the plain server: a client that dawdles is cut off, and a shutdown waits for what is being handled.
const (
	headerTime  = 5 * time.Second
	readTime    = 15 * time.Second
	writeTime   = 25 * time.Second
	idleTime    = time.Minute
	stopTime    = 10 * time.Second
	headerBytes = 16 << 10
	reapEvery   = time.Minute
	sweepTicks  = 5 // a sweep every so many reaps
)

func serve(ctx context.Context, addr string, h *webhook.Handler, k keeping, log *slog.Logger, stdout io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: choose another address with -listen", addr, err)
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	fmt.Fprintf(stdout, "listening on http://%s\n", l.Addr())
	go tick(ctx, h, log)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if k.file != nil {
			h.Drain(ctx, k.file)
		}
	}()
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", addr, err)
	case <-ctx.Done():
	}
	// The signal has ended ctx: what is in flight gets time of its own.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		return fmt.Errorf("stopped before every delivery was handled: %w", err)
	}
	select {
	case <-drained:
	case <-stop.Done():
		// What is still in hand is due at the next start.
	}
	return nil
}

func tick(ctx context.Context, h *webhook.Handler, log *slog.Logger) {
	t := time.NewTicker(reapEvery)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if _, err := h.Reap(ctx); err != nil {
			log.Warn("reap", "error", err)
		}
		if n%sweepTicks != 0 {
			continue
		}
		if _, err := h.Sweep(ctx); err != nil {
			log.Warn("sweep", "error", err)
		}
	}
}
