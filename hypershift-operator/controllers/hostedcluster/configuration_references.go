// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/upsert"
	"github.com/openshift/hypershift/support/webhookkubeconfig"
)

// reconcileConfigRefs copies every Secret and ConfigMap that spec.configuration names, under its own name.
func (r *Reconciler) reconcileConfigRefs(ctx context.Context, s *scope) (ctrl.Result, error) {
	secrets, configMaps := configurationRefs(s.hc.Spec.Configuration)
	var failures []error
	hook := tokenWebhook(s.hc.Spec.Configuration)
	for _, name := range secrets {
		if name == hook {
			if err := r.checkWebhook(ctx, s, name, configv1.KubeConfigKey, webhookkubeconfig.Webhook{Decides: true}); err != nil {
				failures = append(failures, fmt.Errorf("authentication.webhookTokenAuthenticator.kubeConfig: %w", err))
				continue
			}
		}
		failures = append(failures, r.copyWholeSecret(ctx, s, name))
	}
	for _, name := range configMaps {
		failures = append(failures, r.copyWholeConfigMap(ctx, s, name))
	}
	if err := errors.Join(failures...); err != nil {
		return ctrl.Result{}, fmt.Errorf("spec.configuration: %w", err)
	}
	return ctrl.Result{}, nil
}

// tokenWebhook names the Secret with the kubeconfig by which the API server asks whose a token is; empty when nobody is asked.
func tokenWebhook(configuration *hyperv1.ClusterConfiguration) string {
	if configuration == nil || configuration.Authentication == nil || configuration.Authentication.WebhookTokenAuthenticator == nil {
		return ""
	}
	return configuration.Authentication.WebhookTokenAuthenticator.KubeConfig.Name
}

func (r *Reconciler) copyWholeSecret(ctx context.Context, s *scope, name string) error {
	if naming.Reserved(name) {
		return s.errTaken(name)
	}
	source, err := r.sourceSecret(ctx, s, name)
	if err != nil {
		return err
	}
	target := s.secret(name)
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		if err := tenancy.Claim(target, s.key()); err != nil {
			return err
		}
		if target.Type == "" {
			target.Type = source.Type
		}
		target.Data = source.Data
		return nil
	})
	return err
}

func (s *scope) errTaken(name string) error {
	return fmt.Errorf("the Secret %s/%s has the name of one that every control plane has: give yours another name", s.hc.Namespace, name)
}

func (r *Reconciler) copyWholeConfigMap(ctx context.Context, s *scope, name string) error {
	if bundle := reference.Name(s.hc.Spec.AdditionalTrustBundle); name == naming.TrustBundle && bundle != "" {
		if bundle == name {
			return nil // It is there as the trust bundle.
		}
		return fmt.Errorf("the ConfigMap %s/%s would take the place of spec.additionalTrustBundle %s in the control plane: give it another name",
			s.hc.Namespace, name, bundle)
	}
	source, err := r.sourceConfigMap(ctx, s, name)
	if err != nil {
		return err
	}
	target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	_, err = upsert.Object(ctx, r.Client, target, func() error {
		if err := tenancy.Claim(target, s.key()); err != nil {
			return err
		}
		target.Data, target.BinaryData = source.Data, source.BinaryData
		return nil
	})
	return err
}

// configurationRefs lists the names of all Secrets and ConfigMaps that a configuration names, sorted. It finds them by the
// types of the references, so that a reference added to the API later is not forgotten.
func configurationRefs(configuration *hyperv1.ClusterConfiguration) (secrets, configMaps []string) {
	ofSecrets, ofConfigMaps := sets.New[string](), sets.New[string]()
	collectRefs(reflect.ValueOf(configuration), map[reflect.Type]sets.Set[string]{
		reflect.TypeFor[configv1.SecretNameReference]():    ofSecrets,
		reflect.TypeFor[configv1.ConfigMapNameReference](): ofConfigMaps,
	})
	return sets.List(ofSecrets), sets.List(ofConfigMaps)
}

func collectRefs(value reflect.Value, found map[reflect.Type]sets.Set[string]) {
	if names, ok := found[value.Type()]; ok {
		if name := value.FieldByName("Name").String(); name != "" {
			names.Insert(name)
		}
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			collectRefs(value.Elem(), found)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				collectRefs(value.Field(i), found)
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			collectRefs(value.Index(i), found)
		}
	}
}
