// SPDX-License-Identifier: Apache-2.0

// Package exit distinguishes usage errors from failures, and maps both to exit codes.
package exit

import "errors"

// Exit codes of the programs.
const (
	OK      = 0
	Failure = 1
	Usage   = 2
)

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// UsageError marks an error as a mistake in the command line. Nil stays nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Code returns the exit code for an error.
func Code(err error) int {
	if err == nil {
		return OK
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return Usage
	}
	return Failure
}
