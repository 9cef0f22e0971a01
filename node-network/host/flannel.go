// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mtuKey is the key of the pods' MTU in the subnet file.
const mtuKey = "FLANNEL_MTU"

// Flannel reads the file in which Flannel stores the settings of a node.
type Flannel struct {
	// SubnetFile is the path of the file.
	SubnetFile string
}

// MTU returns the MTU, in bytes, of pods that use Flannel.
func (f Flannel) MTU() (int, error) {
	content, err := os.ReadFile(f.SubnetFile)
	if err != nil {
		return 0, fmt.Errorf("reading Flannel's settings; the log of container flannel has the reason if this persists: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != mtuKey {
			continue
		}
		mtu, err := strconv.Atoi(value)
		if err != nil || mtu <= 0 {
			return 0, fmt.Errorf("reading Flannel's settings: %s in %s is %q, not a number of bytes", mtuKey, f.SubnetFile, value)
		}
		return mtu, nil
	}
	return 0, fmt.Errorf("reading Flannel's settings: %s has no %s", f.SubnetFile, mtuKey)
}
