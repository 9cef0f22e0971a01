// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/management"
)

const (
	apisFlag = "management-apis"

	// OpenShift injects the CAs that its administrator trusts into ConfigMaps with this label.
	platformTrustName  = "openshift-config-managed-trusted-ca-bundle"
	platformTrustLabel = "config.openshift.io/inject-trusted-cabundle"
	platformTrustDir   = "/etc/hypershift/platform-trust"
)

// ingressDomainEnv tells the operators of OpenShift payloads the domain of Routes that have no host.
const ingressDomainEnv = "DEFAULT_INGRESS_DOMAIN"

// discover reads three things from the management cluster: the optional APIs that it serves, unless the flag lists
// them, its proxy, and the domain of its Routes.
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
	i.platformEnv = map[string]string{}
	for _, source := range []struct {
		kind   string
		fields map[string][]string
	}{
		{"Proxy", map[string][]string{
			"HTTP_PROXY": {"status", "httpProxy"}, "HTTPS_PROXY": {"status", "httpsProxy"}, "NO_PROXY": {"status", "noProxy"},
		}},
		{"Ingress", map[string][]string{ingressDomainEnv: {"spec", "domain"}}},
	} {
		configured, err := readConfiguration(ctx, c, source.kind)
		if err != nil {
			return err
		}
		for variable, field := range source.fields {
			if value, _, _ := unstructured.NestedString(configured, field...); value != "" {
				i.platformEnv[variable] = value
			}
		}
	}
	return nil
}

// readConfiguration returns the object named cluster of an OpenShift configuration kind; nil if it does not exist or
// the kind is not served.
func readConfiguration(ctx context.Context, c client.Client, kind string) (map[string]any, error) {
	configured := &unstructured.Unstructured{}
	configured.SetGroupVersionKind(schema.GroupVersionKind{Group: management.Configuration, Version: "v1", Kind: kind})
	err := c.Get(ctx, client.ObjectKey{Name: "cluster"}, configured)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the management cluster's %s: %w", kind, err)
	}
	return configured.Object, nil
}

// user returns the user ID of the operator's pods; nil if the management cluster assigns user IDs to each namespace.
func (o *Options) user() *int64 {
	if o.apis.Has(management.Security) {
		return nil
	}
	return ptr.To[int64](1000)
}

// trust is a ConfigMap of CAs and its mount path in the operator.
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
