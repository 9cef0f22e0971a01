// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/management"
)

const (
	apisFlag = "management-apis"

	// OpenShift fills in the CAs that its administrator trusts where it finds the label.
	platformTrustName  = "openshift-config-managed-trusted-ca-bundle"
	platformTrustLabel = "config.openshift.io/inject-trusted-cabundle"
	platformTrustDir   = "/etc/hypershift/platform-trust"
)

// discover asks the management cluster which optional APIs it serves, unless the flag says so, and for the proxy that it goes through.
func (i *install) discover(ctx context.Context, c client.Client, told bool) error {
	if !told {
		found, err := management.Discover(c.RESTMapper())
		if err != nil {
			return err
		}
		if i.apis, err = withoutOwn(ctx, c, found); err != nil {
			return err
		}
	}
	if !i.apis.Has(management.Configuration) {
		return nil
	}
	proxy := &unstructured.Unstructured{}
	proxy.SetGroupVersionKind(schema.GroupVersionKind{Group: management.Configuration, Version: "v1", Kind: "Proxy"})
	if err := c.Get(ctx, client.ObjectKey{Name: "cluster"}, proxy); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("read the management cluster's Proxy: %w", err)
	}
	i.proxy = map[string]string{}
	for variable, field := range map[string]string{"HTTP_PROXY": "httpProxy", "HTTPS_PROXY": "httpsProxy", "NO_PROXY": "noProxy"} {
		if value, _, _ := unstructured.NestedString(proxy.Object, "status", field); value != "" {
			i.proxy[variable] = value
		}
	}
	return nil
}

// user is who the operator's pods run as; where the management cluster gives each namespace users of its own, it chooses.
func (o *Options) user() *int64 {
	if o.apis.Has(management.Security) {
		return nil
	}
	return ptr.To[int64](1000)
}

// trust is a ConfigMap of CAs and where the operator finds them.
type trust struct {
	volume, configMap, dir string
	optional               *bool
}

func (o *Options) trusted() []trust {
	var all []trust
	if len(o.trustBundle) > 0 {
		all = append(all, trust{volume: "trust", configMap: trustBundleName, dir: trustBundleDir})
	}
	if o.apis.Has(management.Configuration) {
		all = append(all, trust{volume: "platform-trust", configMap: platformTrustName, dir: platformTrustDir, optional: ptr.To(true)})
	}
	return all
}

func (o *Options) platformTrust() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.namespace, Name: platformTrustName, Labels: map[string]string{platformTrustLabel: "true"},
	}}
}
