// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"bytes"
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

const (
	authenticationConfigMap = "auth-config"
	authenticationKey       = "auth.yaml"
	issuerCAKey             = "ca-bundle.crt"
)

func hasProviders(scope *component.Scope) bool { return hasProvidersIn(scope.HCP) }

func hasProvidersIn(hcp *hyperv1.HostedControlPlane) bool { return len(providers(hcp)) > 0 }

// providers returns the OpenID Connect issuers whose tokens the API server should accept.
func providers(hcp *hyperv1.HostedControlPlane) []configv1.OIDCProvider {
	authentication := authenticationOf(hcp)
	if authentication.Type != configv1.AuthenticationTypeOIDC {
		return nil
	}
	return authentication.OIDCProviders
}

func authenticationOf(hcp *hyperv1.HostedControlPlane) configv1.AuthenticationSpec {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.Authentication == nil {
		return configv1.AuthenticationSpec{}
	}
	return *hcp.Spec.Configuration.Authentication
}

// adaptAuthentication writes the supported providers. Without any, the API server accepts no OpenID Connect token.
func adaptAuthentication(ctx context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	config, _, err := authenticators(ctx, scope.Client, scope.HCP)
	if err != nil {
		return err
	}
	raw, err := encodeAuthentication(config, scope.Version)
	if err != nil {
		return fmt.Errorf("rendering the authentication configuration: %w", err)
	}
	cm.Data = map[string]string{authenticationKey: raw}
	return nil
}

// issuerCA reads the CA bundle for the issuer's server; an empty name means the system's CAs. A missing bundle is an
// error, because the system's CAs would trust many more servers.
func issuerCA(ctx context.Context, c client.Reader, namespace, name string, provider *field.Path) (string, *field.Error, error) {
	if name == "" {
		return "", nil, nil
	}
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm)
	if client.IgnoreNotFound(err) != nil {
		return "", nil, fmt.Errorf("reading the issuer's CA in ConfigMap %s: %w", name, err)
	}
	if cm.Data[issuerCAKey] == "" {
		return "", field.Invalid(provider.Child("issuer", "issuerCertificateAuthority", "name"), name,
			fmt.Sprintf("there is no such ConfigMap with certificates under key %s", issuerCAKey)), nil
	}
	return cm.Data[issuerCAKey], nil, nil
}

// authenticationScheme contains the configuration in the versions that API servers read.
var authenticationScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(apiserver.AddToScheme(scheme))
	utilruntime.Must(apiserverv1beta1.AddToScheme(scheme))
	utilruntime.Must(apiserverv1.AddToScheme(scheme))
	return scheme
}()

func encodeAuthentication(config *apiserver.AuthenticationConfiguration, version string) (string, error) {
	gv, err := authenticationVersion(version)
	if err != nil {
		return "", err
	}
	yaml := serializerjson.NewSerializerWithOptions(serializerjson.DefaultMetaFactory, authenticationScheme, authenticationScheme,
		serializerjson.SerializerOptions{Yaml: true})
	var out bytes.Buffer
	if err := serializer.NewCodecFactory(authenticationScheme).EncoderForVersion(yaml, gv).Encode(config, &out); err != nil {
		return "", err
	}
	return out.String(), nil
}

// authenticationVersion returns the API version that an API server of that version reads: v1 came with 1.34, and
// earlier versions only read v1beta1.
func authenticationVersion(version string) (schema.GroupVersion, error) {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return schema.GroupVersion{}, fmt.Errorf("version %q of the control plane: %w", version, err)
	}
	if v.Major == 1 && v.Minor < 34 {
		return apiserverv1beta1.ConfigSchemeGroupVersion, nil
	}
	return apiserverv1.SchemeGroupVersion, nil
}
