// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/syntax/systemd"
)

const (
	// proxyPath holds the proxy variables for the environment of units. The URL may contain a password, so only root may
	// read the file.
	proxyPath   = nodeplan.ProxyEnvironment
	proxyDropin = "[Service]\nEnvironmentFile=" + proxyPath + "\n"
)

// proxyFiles returns the file with the proxy variables of the node's units.
func (in Input) proxyFiles() ([]types.File, error) {
	if in.Proxy.IsZero() {
		return nil, nil
	}
	if err := in.Proxy.Check(); err != nil {
		return nil, err
	}
	const field = "spec.configuration.proxy."
	var variables []systemd.Variable
	for _, variable := range []systemd.Variable{
		{Field: field + "httpProxy", Name: "HTTP_PROXY", Value: in.Proxy.HTTP},
		{Field: field + "httpsProxy", Name: "HTTPS_PROXY", Value: in.Proxy.HTTPS},
		{Field: field + "noProxy", Name: "NO_PROXY", Value: in.Proxy.NoProxy},
	} {
		if variable.Value != "" {
			variables = append(variables, variable)
		}
	}
	text, err := systemd.EnvironmentFile(variables...)
	if err != nil {
		return nil, err
	}
	return []types.File{file(proxyPath, 0o600, text)}, nil
}

// addProxy makes the units read the proxy variables.
func (in Input) addProxy(units []types.Unit) []types.Unit {
	if in.Proxy.IsZero() {
		return units
	}
	for i := range units {
		units[i].Dropins = append(units[i].Dropins, types.Dropin{Name: "10-hypershift-proxy.conf", Contents: ptr.To(proxyDropin)})
	}
	return units
}
