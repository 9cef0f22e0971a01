// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"fmt"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"
)

const (
	// proxyPath holds the proxy in the environment of units. Its URL may hold a password, so only root may read it.
	proxyPath   = "/etc/kubernetes/proxy.env"
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

// addProxy has the units read the proxy. One that is not the node's own, such as containerd's, gets no more than that.
func (in Input) addProxy(units []types.Unit, proxied []string) []types.Unit {
	if in.Proxy.IsZero() {
		return units
	}
	dropin := types.Dropin{Name: "10-hypershift-proxy.conf", Contents: ptr.To(proxyDropin)}
	own := map[string]int{}
	for i, unit := range units {
		own[unit.Name] = i
	}
	for _, name := range proxied {
		if i, is := own[name]; is {
			units[i].Dropins = append(units[i].Dropins, dropin)
			continue
		}
		units = append(units, types.Unit{Name: name, Dropins: []types.Dropin{dropin}})
	}
	return units
}

// systemdQuote quotes a value of an EnvironmentFile.
func systemdQuote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(value) + `"`
}
