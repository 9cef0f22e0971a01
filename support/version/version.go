// SPDX-License-Identifier: Apache-2.0

// Package version tells which build of HyperShift for MAAS this is.
package version

// commit is set by the linker.
var commit = "unknown"

// Commit is the revision that the program was built from, "unknown" for a build without the Makefile.
func Commit() string { return commit }
