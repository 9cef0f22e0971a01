// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"fmt"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeplan"
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
	var text strings.Builder
	for _, variable := range []struct{ name, value string }{
		{"HTTP_PROXY", in.Proxy.HTTP}, {"HTTPS_PROXY", in.Proxy.HTTPS}, {"NO_PROXY", in.Proxy.NoProxy},
	} {
		if variable.value != "" {
			fmt.Fprintf(&text, "%s=%s\n", variable.name, systemdQuote(variable.value))
		}
	}
	return []types.File{file(proxyPath, 0o600, []byte(text.String()))}, nil
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

// systemdQuote quotes a value of an EnvironmentFile.
func systemdQuote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(value) + `"`
}
