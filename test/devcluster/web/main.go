// SPDX-License-Identifier: Apache-2.0

// Command web serves a web page and contains a few diagnostic tools, for clusters whose images have no shell. If its
// name or its first argument is admit, cat, fetch, hostname or lookup, it runs that tool.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// timeout limits fetch and lookup.
const timeout = 10 * time.Second

var tools = map[string]func(ctx context.Context, args []string, out io.Writer) error{
	"serve":    serve,
	"admit":    admit,
	"cat":      cat,
	"fetch":    fetch,
	"hostname": hostname,
	"lookup":   lookup,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	name, rest := filepath.Base(args[0]), args[1:]
	tool, ok := tools[name]
	if !ok && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
		tool, ok = tools[name]
	} else if !ok {
		tool, ok = serve, true
	}
	if !ok {
		return fmt.Errorf("unknown command %q: use serve, admit, cat, fetch, hostname or lookup", name)
	}
	return tool(ctx, rest, out)
}

// serve answers every request with a page that names the pod; the address is the first argument or :8080.
func serve(ctx context.Context, args []string, out io.Writer) error {
	address := ":8080"
	if len(args) > 0 {
		address = args[0]
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	logger := log.New(out, "", log.LstdFlags)
	server := &http.Server{
		Addr:              address,
		Handler:           page(host, logger),
		ReadHeaderTimeout: timeout,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	logger.Printf("%s serves on %s", host, address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", address, err)
	}
	return nil
}

func page(host string, logger *log.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		logger.Printf("%s %s from %s", r.Method, r.URL.Path, r.RemoteAddr)
		fmt.Fprintf(w, "Hello from %s\n", host)
	})
}

func cat(_ context.Context, args []string, out io.Writer) error {
	for _, name := range args {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return nil
}

func hostname(_ context.Context, _ []string, out io.Writer) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, host)
	return err
}

func fetch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: fetch URL")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(out, answer.Body); err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", args[0], answer.Status)
	}
	return nil
}

func lookup(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: lookup NAME")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, args[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.Join(addresses, "\n"))
	return err
}
