// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// SeedEnv names the environment variable that has tests make up what they made up in another run, whose log tells the number.
const SeedEnv = "HYPERSHIFT_TEST_SEED"

// Random is what a test makes things up with; another one at each call, so that a subtest that runs alone makes up the same. The seed is
// logged, and that of SeedEnv when it is set.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64() //nolint:gosec // What a test makes up is no secret.
	if text := os.Getenv(SeedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", SeedEnv, err)
		}
	}
	t.Logf("%s=%d", SeedEnv, seed)
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // Nor is this.
}
