// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// SeedEnv is the environment variable with the seed of the random values. A test logs its seed; a run with that seed
// gets the same values.
const SeedEnv = "HYPERSHIFT_TEST_SEED"

// Random returns a source of random numbers. Each call returns a new one, so a subtest that runs alone gets the same
// numbers. It logs the seed, which SeedEnv can set.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64() //nolint:gosec // Random values of tests are not secret.
	if text := os.Getenv(SeedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", SeedEnv, err)
		}
	}
	t.Logf("%s=%d", SeedEnv, seed)
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // Nor is this.
}
