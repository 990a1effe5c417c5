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

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("webhook", flag.ContinueOnError)
	fs.SetOutput(stderr)
	listen := fs.String("listen", "127.0.0.1:8080", "`address` to serve on; port 0 picks one")
	check := fs.Bool("check", false, "check the configuration, send nothing, and exit")
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
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	h, err := build(env{getenv: getenv, readFile: os.ReadFile}, log)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "webhook:", err)
		return exitFailed
	case *check:
		fmt.Fprintln(stdout, "the configuration is complete")
		return exitOK
	case getenv("AWS_LAMBDA_RUNTIME_API") != "":
		// It ends with the process.
		lambda.StartWithOptions(h.Lambda, lambda.WithContext(ctx))
		return exitOK
	}
	if err := serve(ctx, *listen, h, log, stdout); err != nil {
		fmt.Fprintln(stderr, "webhook:", err)
		return exitFailed
	}
	return exitOK
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
)

func serve(ctx context.Context, addr string, h *webhook.Handler, log *slog.Logger, stdout io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: choose another address with -listen", addr, err)
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	fmt.Fprintf(stdout, "listening on http://%s\n", l.Addr())
	go reap(ctx, h, log)
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
	return nil
}

func reap(ctx context.Context, h *webhook.Handler, log *slog.Logger) {
	t := time.NewTicker(reapEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if _, err := h.Reap(ctx); err != nil {
				log.Warn("reap", "error", err)
			}
		}
	}
}
