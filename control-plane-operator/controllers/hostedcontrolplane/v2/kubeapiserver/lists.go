// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/syntax"
	"github.com/openshift/hypershift/support/syntax/envlist"
)

// ValidateLists rejects values that the API server would parse differently in flags that contain lists.
func ValidateLists(hcp *hyperv1.HostedControlPlane) error {
	_, gates := featureGates(hcp)
	_, origins := corsOrigins(hcp)
	return errors.Join(gates, origins, validateNames(hcp))
}

// featureGates returns the gates that the cluster names explicitly. Feature sets are specific to OpenShift and have no
// effect here.
func featureGates(hcp *hyperv1.HostedControlPlane) (string, error) {
	config := hcp.Spec.Configuration
	if config == nil || config.FeatureGate == nil || config.FeatureGate.CustomNoUpgrade == nil {
		return "", nil
	}
	var gates []envlist.Pair
	for _, name := range config.FeatureGate.CustomNoUpgrade.Enabled {
		gates = append(gates, envlist.Pair{Key: string(name), Value: "true"})
	}
	for _, name := range config.FeatureGate.CustomNoUpgrade.Disabled {
		gates = append(gates, envlist.Pair{Key: string(name), Value: "false"})
	}
	return envlist.JoinPairs("configuration.featureGate.customNoUpgrade", gates...)
}

// corsOrigins returns the allowed origins, which are regular expressions. The flag reads them as comma-separated
// values, in which quotes are special too.
func corsOrigins(hcp *hyperv1.HostedControlPlane) (string, error) {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.APIServer == nil {
		return "", nil
	}
	const field = "configuration.apiServer.additionalCORSAllowedOrigins"
	origins := hcp.Spec.Configuration.APIServer.AdditionalCORSAllowedOrigins
	for _, origin := range origins {
		if strings.Contains(origin, `"`) {
			return "", syntax.Refuse(field, "has an entry with a quote; remove it")
		}
	}
	return envlist.Join(field, origins...)
}

// validateNames rejects names of certificates that are not host names.
func validateNames(hcp *hyperv1.HostedControlPlane) error {
	var failures []error
	for _, named := range namedCertificates(hcp) {
		for _, name := range named.Names {
			host := strings.TrimPrefix(name, "*.")
			if len(validation.IsDNS1123Subdomain(strings.ToLower(host))) > 0 {
				failures = append(failures, fmt.Errorf(
					"configuration.apiServer.servingCerts.namedCertificates: %q is not a host name; "+
						"write it as in api.example.com or *.example.com", name))
			}
		}
	}
	return errors.Join(failures...)
}
