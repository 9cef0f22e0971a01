// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/cloudconfig"
	"github.com/openshift/hypershift/support/nodeinput"
)

// firstBoot returns the user-data that a machine is installed with. The machine then fetches its configuration with the
// token.
func (s Secrets) firstBoot(hash string, token *corev1.Secret) ([]byte, error) {
	bearer := token.Data[hyperv1.TokenSecretTokenKey]
	if token.Annotations[hyperv1.TokenSecretUserDataFormatAnnotation] != string(hyperv1.UserDataCloudConfig) {
		return s.stub(hash, bearer)
	}
	rendered, err := cloudconfig.Render(cloudconfig.Input{
		Endpoint: s.HC.Status.IgnitionEndpoint, CA: s.IgnitionCA, Token: bearer, NodePool: s.Key(), ConfigHash: hash,
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the user-data of NodePool %s: %w", s.Key(), err)
	}
	return rendered, nil
}

// stub returns the first-boot configuration for Ignition.
func (s Secrets) stub(hash string, token []byte) ([]byte, error) {
	header := func(name, value string) ignition.HTTPHeader {
		return ignition.HTTPHeader{Name: name, Value: ptr.To(value)}
	}
	ca := (&dataurl.DataURL{
		Data:      s.IgnitionCA,
		MediaType: dataurl.MediaType{Type: "text", Subtype: "plain"},
		Encoding:  dataurl.EncodingBase64,
	}).String()
	config := ignition.Config{Ignition: ignition.Ignition{
		Version: ignition.MaxVersion.String(),
		Security: ignition.Security{TLS: ignition.TLS{
			CertificateAuthorities: []ignition.Resource{{Source: ptr.To(ca)}},
		}},
		Config: ignition.IgnitionConfig{Merge: []ignition.Resource{{
			Source: ptr.To(fmt.Sprintf("https://%s/ignition", s.HC.Status.IgnitionEndpoint)),
			HTTPHeaders: ignition.HTTPHeaders{
				header("Authorization", "Bearer "+base64.StdEncoding.EncodeToString(token)),
				header("NodePool", s.Key()),
				header("TargetConfigVersionHash", hash),
			},
		}}},
		Proxy: s.ignitionProxy(),
	}}
	s.Platform.CustomizeIgnition(s.View(), &config)
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the user-data of NodePool %s: %w", s.Key(), err)
	}
	return raw, nil
}

// ignitionProxy returns the proxy through which a machine fetches its configuration. Machines of the Kubernetes
// distribution reach their ignition-server directly, as they do their API server.
func (s Secrets) ignitionProxy() ignition.Proxy {
	if s.HC.Spec.Configuration == nil {
		return ignition.Proxy{}
	}
	var direct []string
	if !s.Distribution().OwnOperators {
		direct = append(direct, hostOf(s.HC.Status.IgnitionEndpoint))
	}
	read := nodeinput.ReadProxy(s.HC.Spec.Configuration.Proxy, s.HC.Spec.Networking, direct...)
	if read.IsZero() {
		return ignition.Proxy{}
	}
	proxy := ignition.Proxy{HTTPProxy: unlessEmpty(read.HTTP), HTTPSProxy: unlessEmpty(read.HTTPS)}
	for entry := range strings.SplitSeq(read.NoProxy, ",") {
		proxy.NoProxy = append(proxy.NoProxy, ignition.NoProxyItem(entry))
	}
	return proxy
}

func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// hostOf returns the host of host[:port].
func hostOf(endpoint string) string {
	if host, _, err := net.SplitHostPort(endpoint); err == nil {
		return host
	}
	return endpoint
}
