// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/pki"
)

// overlap is how long the previous CA remains trusted. Replicas that have not read the new certificate yet still use
// one of the previous CA. Clients cannot read objects whose conversion fails.
const overlap = time.Hour

// clusterAPI is the label that Cluster API's CRDs have with every installer.
var clusterAPI = client.MatchingLabels{"cluster.x-k8s.io/provider": "cluster-api"}

// announce configures the CA in the API server, and returns the delay until the next check. It does nothing if the
// installation has no webhook.
func (c *Certificate) announce(ctx context.Context, ca *pki.KeyPair) (time.Duration, error) {
	young := c.Clock.Now().Sub(ca.Cert.NotBefore) < overlap
	overlapping, err := c.announceDefaults(ctx, ca.CertPEM, young)
	converting, errConversion := c.announceConversion(ctx, ca.CertPEM, young)
	if overlapping || converting {
		return overlap, errors.Join(err, errConversion)
	}
	return recheck, errors.Join(err, errConversion)
}

func (c *Certificate) announceDefaults(ctx context.Context, ca []byte, young bool) (overlapping bool, err error) {
	config := &admissionv1.MutatingWebhookConfiguration{}
	err = c.Client.Get(ctx, client.ObjectKey{Name: operatorwebhook.Name}, config)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", operatorwebhook.Name, err)
	}
	changed := false
	for i := range config.Webhooks {
		to := &config.Webhooks[i].ClientConfig
		wanted := bundle(ca, to.CABundle, young)
		changed = changed || !bytes.Equal(to.CABundle, wanted)
		overlapping = overlapping || !bytes.Equal(wanted, ca)
		to.CABundle = wanted
	}
	if !changed {
		return overlapping, nil
	}
	if err := c.Client.Update(ctx, config); err != nil {
		return overlapping, fmt.Errorf("setting the authority in MutatingWebhookConfiguration %s: %w", operatorwebhook.Name, err)
	}
	return overlapping, nil
}

func (c *Certificate) announceConversion(ctx context.Context, ca []byte, young bool) (overlapping bool, err error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := c.Reader.List(ctx, list, clusterAPI); err != nil {
		return false, fmt.Errorf("listing Cluster API's CRDs: %w", err)
	}
	for i := range list.Items {
		crd := &list.Items[i]
		if !operatorwebhook.Converts(crd, c.Namespace) {
			continue
		}
		now := crd.Spec.Conversion.Webhook.ClientConfig.CABundle
		wanted := bundle(ca, now, young)
		overlapping = overlapping || !bytes.Equal(wanted, ca)
		if bytes.Equal(now, wanted) {
			continue
		}
		if err := c.Client.Patch(ctx, crd, authorityPatch(crd, wanted)); err != nil {
			return overlapping, fmt.Errorf("setting the authority in CRD %s: %w", crd.Name, err)
		}
	}
	return overlapping, nil
}

// authorityPatch changes only the CA, and only if the object has not changed since it was read.
func authorityPatch(crd *apiextensionsv1.CustomResourceDefinition, ca []byte) client.Patch {
	config := map[string]any{"clientConfig": map[string]any{"caBundle": ca}}
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
		"spec":     map[string]any{"conversion": map[string]any{"webhook": config}},
	})
	if err != nil {
		panic(err) // Strings and bytes can always be encoded.
	}
	return client.RawPatch(types.MergePatchType, raw)
}

// bundle returns the CA bundle that should replace the bundle now. It contains the current CA, and the previous CA
// while the current one is young.
func bundle(ca, now []byte, young bool) []byte {
	before, after, found := bytes.Cut(now, ca)
	switch {
	case !young:
		return ca
	case found:
		return slices.Concat(ca, first(slices.Concat(before, after)))
	default:
		return slices.Concat(ca, first(now))
	}
}

// first returns the first certificate of a bundle; nil if there is none.
func first(bundle []byte) []byte {
	block, _ := pem.Decode(bundle)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	return pem.EncodeToMemory(block)
}
