// SPDX-License-Identifier: Apache-2.0

package exit

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCode(t *testing.T) {
	mistake := errors.New("unknown flag")
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"When there is no error, the exit code should be 0", nil, OK},
		{"When a command fails, the exit code should be 1", errors.New("refused"), Failure},
		{"When the command line is wrong, the exit code should be 2", UsageError(mistake), Usage},
		{"When the usage error is wrapped, the exit code should still be 2", fmt.Errorf("create: %w", UsageError(mistake)), Usage},
		{"When a nil error is marked as a usage error, the exit code should be 0", UsageError(nil), OK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(Code(tt.err)).To(Equal(tt.want))
		})
	}
	NewWithT(t).Expect(UsageError(mistake)).To(MatchError(mistake))
}
