// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"
)

// kind is an encryption method.
type kind string

const (
	secretbox kind = "secretbox"
	aescbc    kind = "aescbc"
	// kms is a plugin of that name, which holds the key itself.
	kms kind = "kms"
	// identity does not encrypt. It reads unencrypted data.
	identity kind = "identity"
)

// provider is an encryption method with one key. The first provider of a configuration writes, all of them read.
type provider struct {
	Kind kind
	// Name and Secret (base64) belong to the key. A plugin has only a name, and identity has neither.
	Name, Secret string
}

// renderProviders returns the encryption configuration of the API server. Consecutive keys of one kind share a block.
func renderProviders(providers []provider) ([]byte, error) {
	var blocks []apiserverv1.ProviderConfiguration
	former := identity
	for _, p := range providers {
		key := apiserverv1.Key{Name: p.Name, Secret: p.Secret}
		follows := former == p.Kind
		former = p.Kind
		switch {
		case p.Kind == identity:
			blocks = append(blocks, apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}})
		case p.Kind == kms:
			blocks = append(blocks, apiserverv1.ProviderConfiguration{KMS: &apiserverv1.KMSConfiguration{
				APIVersion: "v2", Name: p.Name, Endpoint: "unix://" + socketOf(p.Name), Timeout: &metav1.Duration{Duration: pluginTimeout},
			}})
		case p.Kind == secretbox && follows:
			block := blocks[len(blocks)-1].Secretbox
			block.Keys = append(block.Keys, key)
		case p.Kind == secretbox:
			blocks = append(blocks, apiserverv1.ProviderConfiguration{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{key}}})
		case follows:
			block := blocks[len(blocks)-1].AESCBC
			block.Keys = append(block.Keys, key)
		default:
			blocks = append(blocks, apiserverv1.ProviderConfiguration{AESCBC: &apiserverv1.AESConfiguration{Keys: []apiserverv1.Key{key}}})
		}
	}
	raw, err := yaml.Marshal(apiserverv1.EncryptionConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{Resources: []string{"secrets"}, Providers: blocks}},
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the encryption configuration: %w", err)
	}
	return raw, nil
}

// parseProviders reads the output of renderProviders.
func parseProviders(raw []byte) ([]provider, error) {
	var config apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict(raw, &config); err != nil {
		return nil, fmt.Errorf("reading the encryption configuration in Secret %s: %w", EncryptionSecret, err)
	}
	var providers []provider
	for _, resource := range config.Resources {
		for _, block := range resource.Providers {
			providers = append(providers, flatten(block)...)
		}
	}
	if len(providers) == 0 {
		return nil, fmt.Errorf("the encryption configuration in Secret %s names no key", EncryptionSecret)
	}
	return providers, nil
}

func flatten(block apiserverv1.ProviderConfiguration) []provider {
	var providers []provider
	add := func(k kind, keys []apiserverv1.Key) {
		for _, key := range keys {
			providers = append(providers, provider{Kind: k, Name: key.Name, Secret: key.Secret})
		}
	}
	switch {
	case block.Secretbox != nil:
		add(secretbox, block.Secretbox.Keys)
	case block.AESCBC != nil:
		add(aescbc, block.AESCBC.Keys)
	case block.KMS != nil:
		providers = append(providers, provider{Kind: kms, Name: block.KMS.Name})
	case block.Identity != nil:
		providers = append(providers, provider{Kind: identity})
	}
	return providers
}
