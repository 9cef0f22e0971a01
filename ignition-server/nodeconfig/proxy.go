// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/syntax/systemd"
)

const (
	// proxyPath holds the proxy in the environment of units. Its URL may hold a password, so only root may read it.
	proxyPath   = nodeplan.ProxyEnvironment
	proxyDropin = "[Service]\nEnvironmentFile=" + proxyPath + "\n"
)

// proxyFiles gives the proxy to the units of the node.
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

// addProxy has the units read the proxy.
func (in Input) addProxy(units []types.Unit) []types.Unit {
	if in.Proxy.IsZero() {
		return units
	}
	for i := range units {
		units[i].Dropins = append(units[i].Dropins, types.Dropin{Name: "10-hypershift-proxy.conf", Contents: ptr.To(proxyDropin)})
	}
	return units
}
