// SPDX-License-Identifier: Apache-2.0

package component

// Flags are command line flags, in the order in which they were set.
type Flags []string

// Set appends --name=value.
func (f *Flags) Set(name, value string) {
	*f = append(*f, "--"+name+"="+value)
}

// SetUnlessEmpty appends --name=value if there is a value.
func (f *Flags) SetUnlessEmpty(name, value string) {
	if value != "" {
		f.Set(name, value)
	}
}
