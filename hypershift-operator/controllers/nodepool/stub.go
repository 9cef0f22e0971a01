package nodepool

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"
)

// stub is the first-boot configuration that MAAS hands to a machine: it fetches the real one with the token.
func (s *scope) stub(hash string, token []byte) ([]byte, error) {
	header := func(name, value string) ignition.HTTPHeader {
		return ignition.HTTPHeader{Name: name, Value: ptr.To(value)}
	}
	ca := (&dataurl.DataURL{
		Data:      s.ignitionCA,
		MediaType: dataurl.MediaType{Type: "text", Subtype: "plain"},
		Encoding:  dataurl.EncodingBase64,
	}).String()
	config := ignition.Config{Ignition: ignition.Ignition{
		Version: ignition.MaxVersion.String(),
		Security: ignition.Security{TLS: ignition.TLS{
			CertificateAuthorities: []ignition.Resource{{Source: ptr.To(ca)}},
		}},
		Config: ignition.IgnitionConfig{Merge: []ignition.Resource{{
			Source: ptr.To(fmt.Sprintf("https://%s/ignition", s.hc.Status.IgnitionEndpoint)),
			HTTPHeaders: ignition.HTTPHeaders{
				header("Authorization", "Bearer "+base64.StdEncoding.EncodeToString(token)),
				header("NodePool", s.key()),
				header("TargetConfigVersionHash", hash),
			},
		}}},
		Proxy: s.ignitionProxy(),
	}}
	s.platform.CustomizeIgnition(s.view(), &config)
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the user-data of NodePool %s: %w", s.key(), err)
	}
	return raw, nil
}

func (s *scope) ignitionProxy() ignition.Proxy {
	status := clusterProxy(s.hc).Status
	var proxy ignition.Proxy
	if status.HTTPProxy != "" {
		proxy.HTTPProxy = ptr.To(status.HTTPProxy)
	}
	if status.HTTPSProxy != "" {
		proxy.HTTPSProxy = ptr.To(status.HTTPSProxy)
	}
	if status.NoProxy != "" {
		for entry := range strings.SplitSeq(status.NoProxy, ",") {
			proxy.NoProxy = append(proxy.NoProxy, ignition.NoProxyItem(entry))
		}
	}
	return proxy
}
