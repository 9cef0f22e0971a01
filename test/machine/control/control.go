// SPDX-License-Identifier: Apache-2.0

// Package control is the protocol between the programs of a machine, mainly systemctl, and its PID 1. It has one JSON
// request and one answer for each connection, on a socket that only root can access.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/openshift/hypershift/test/machine/units"
)

// Socket is the path of PID 1's socket, in the machine.
const Socket = "/run/machine/control.sock"

// Verb is the requested operation.
type Verb string

// The verbs.
const (
	Start   Verb = "start"
	Stop    Verb = "stop"
	Restart Verb = "restart"
	Reload  Verb = "daemon-reload"
	Kill    Verb = "kill"
	Status  Verb = "status"
	// Reboot and PowerOff are answered before they are executed.
	Reboot   Verb = "reboot"
	PowerOff Verb = "poweroff"
)

// Request is one request to PID 1.
type Request struct {
	Verb Verb `json:"verb"`
	// Units are names with suffixes.
	Units []string `json:"units,omitempty"`
	// NoBlock returns without waiting until the units are up.
	NoBlock bool `json:"noBlock,omitempty"`
	// Signal is for Kill.
	Signal syscall.Signal `json:"signal,omitempty"`
}

// Answer is the response of PID 1.
type Answer struct {
	// Error is the error message; empty on success.
	Error string `json:"error,omitempty"`
	// Units is the status of all units, for Status.
	Units map[string]units.Status `json:"units,omitempty"`
}

// Server answers requests.
type Server struct {
	Manager *units.Manager
	// Power is called with Reboot or PowerOff.
	Power func(Verb)
}

// Serve listens at path until the context ends.
func (s *Server) Serve(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	_ = os.Remove(path) // The socket of an earlier boot.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("listening for systemctl: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // The listener is closed.
			}
			go s.answer(ctx, conn)
		}
	}()
	return nil
}

func (s *Server) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	var request Request
	answer := Answer{}
	err := json.NewDecoder(conn).Decode(&request)
	if err == nil {
		answer.Units, err = s.do(ctx, request)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(answer) // The client may have disconnected.
}

func (s *Server) do(ctx context.Context, r Request) (map[string]units.Status, error) {
	switch r.Verb {
	case Start:
		return nil, s.Manager.Start(ctx, !r.NoBlock, r.Units...)
	case Stop:
		return nil, s.Manager.Stop(ctx, r.Units...)
	case Restart:
		return nil, s.Manager.Restart(ctx, !r.NoBlock, r.Units...)
	case Reload:
		s.Manager.Reload()
		return nil, nil
	case Kill:
		return nil, s.Manager.Kill(r.Signal, r.Units...)
	case Status:
		return s.Manager.Status(), nil
	case Reboot, PowerOff:
		go s.Power(r.Verb)
		return nil, nil
	}
	return nil, fmt.Errorf("PID 1 does not know %q", r.Verb)
}

// Ask sends a request to PID 1 at path and waits for its answer.
func Ask(path string, request Request) (Answer, error) {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", path)
	if err != nil {
		return Answer{}, fmt.Errorf("connecting to PID 1: %w", err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		return Answer{}, fmt.Errorf("asking PID 1 for %s: %w", request.Verb, err)
	}
	var answer Answer
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return Answer{}, fmt.Errorf("asking PID 1 for %s: %w", request.Verb, err)
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}
