// SPDX-License-Identifier: Apache-2.0

// Package ipnet holds a network that reads and writes itself as CIDR text, such as "10.132.0.0/14".
package ipnet

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
)

// IPNet is a net.IPNet whose JSON form is CIDR text. The zero value is "no network" and is written as an empty string.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:object:generate=false
type IPNet net.IPNet

// IPNets is a list of networks.
//
// +kubebuilder:object:generate=false
type IPNets []IPNet

// String returns the CIDR text, and an empty string for the zero value.
func (n IPNet) String() string {
	if len(n.IP) == 0 {
		return ""
	}
	return (*net.IPNet)(&n).String()
}

// MarshalJSON writes the CIDR text.
func (n IPNet) MarshalJSON() ([]byte, error) {
	return json.Marshal(n.String())
}

// UnmarshalJSON reads CIDR text; empty text and null give the zero value. Host bits are dropped, so
// "10.0.0.7/24" reads as 10.0.0.0/24.
func (n *IPNet) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a network must be CIDR text such as \"10.0.0.0/16\": %w", err)
	}
	if text == "" {
		*n = IPNet{}
		return nil
	}
	parsed, err := ParseCIDR(text)
	if err != nil {
		return err
	}
	*n = *parsed
	return nil
}

// DeepCopyInto copies the network, sharing nothing with the original.
func (n *IPNet) DeepCopyInto(out *IPNet) {
	*out = IPNet{IP: slices.Clone(n.IP), Mask: slices.Clone(n.Mask)}
}

// DeepCopy returns a copy, and nil for nil.
func (n *IPNet) DeepCopy() *IPNet {
	if n == nil {
		return nil
	}
	out := new(IPNet)
	n.DeepCopyInto(out)
	return out
}

// ParseCIDR reads CIDR text. It returns an error that names the text when it is no network.
func ParseCIDR(text string) (*IPNet, error) {
	_, parsed, err := net.ParseCIDR(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a network in CIDR form such as \"10.0.0.0/16\"", text)
	}
	return (*IPNet)(parsed), nil
}

// MustParseCIDR is ParseCIDR for text that is fixed in the program; it panics when the text is no network.
func MustParseCIDR(text string) *IPNet {
	parsed, err := ParseCIDR(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// StringSlice returns the CIDR text of each network, in order.
func (nets IPNets) StringSlice() []string {
	out := make([]string, 0, len(nets))
	for _, n := range nets {
		out = append(out, n.String())
	}
	return out
}

// CSVString returns the networks as comma-separated CIDR text, the form that NO_PROXY and flags take.
func (nets IPNets) CSVString() string {
	return strings.Join(nets.StringSlice(), ",")
}
