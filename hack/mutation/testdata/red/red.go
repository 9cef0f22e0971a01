// SPDX-License-Identifier: Apache-2.0

// Package red has a test that fails.
package red

// Red is called by a test.
func Red() bool { return false }
