// SPDX-License-Identifier: Apache-2.0

// Package version identifies the build of HyperShift for MAAS.
package version

// commit is set by the linker.
var commit = "unknown"

// Commit returns the revision from which the program was built; "unknown" for a build without the Makefile.
func Commit() string { return commit }
