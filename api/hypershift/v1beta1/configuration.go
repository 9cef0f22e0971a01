// SPDX-License-Identifier: Apache-2.0

package v1beta1

import configv1 "github.com/openshift/api/config/v1"

// ClusterConfiguration is the global configuration of the guest cluster. Each field is the spec of the like-named
// resource of config.openshift.io that the guest gets; Secrets and ConfigMaps that it names are read from the
// HostedCluster's namespace.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.oauth) || !has(self.oauth.tokenConfig) || !has(self.oauth.tokenConfig.accessTokenInactivityTimeout) || [self.oauth.tokenConfig.accessTokenInactivityTimeout].all(d, !d.matches(r'^[+-]?([0-9]{1,5}(\.[0-9]+)?[hm]|[0-9]{1,9}(\.[0-9]+)?(s|ms|us|µs|ns)){1,9}$') || duration(d) >= duration('300s'))`,message=`configuration.oauth.tokenConfig.accessTokenInactivityTimeout must be at least 300s`
type ClusterConfiguration struct {
	// apiServer configures the API server: certificates, audit, TLS profile.
	// +optional
	APIServer *configv1.APIServerSpec `json:"apiServer,omitempty"`

	// authentication configures which users may log in, and how.
	// +optional
	Authentication *configv1.AuthenticationSpec `json:"authentication,omitempty"`

	// featureGate turns features on and off.
	// +optional
	FeatureGate *configv1.FeatureGateSpec `json:"featureGate,omitempty"`

	// image says which registries may be used.
	// +optional
	Image *configv1.ImageSpec `json:"image,omitempty"`

	// ingress is the domain of applications and its defaults.
	// +optional
	Ingress *configv1.IngressSpec `json:"ingress,omitempty"`

	// network holds network settings that spec.networking has not.
	// +optional
	Network *configv1.NetworkSpec `json:"network,omitempty"`

	// oauth is the identity providers of the OpenShift login.
	// +optional
	OAuth *configv1.OAuthSpec `json:"oauth,omitempty"`

	// operatorhub turns the default operator catalogs on and off.
	// +optional
	OperatorHub *configv1.OperatorHubSpec `json:"operatorhub,omitempty"`

	// scheduler configures the scheduler.
	// +optional
	Scheduler *configv1.SchedulerSpec `json:"scheduler,omitempty"`

	// proxy is the HTTP proxy of the cluster.
	// +optional
	Proxy *configv1.ProxySpec `json:"proxy,omitempty"`
}

// GetAPIServer returns the API server's configuration, and nil when c or it is nil.
func (c *ClusterConfiguration) GetAPIServer() *configv1.APIServerSpec {
	if c == nil {
		return nil
	}
	return c.APIServer
}

// ConfigurationStatus is what the guest cluster tells of its configuration.
type ConfigurationStatus struct {
	// authentication is the status of the guest's Authentication resource.
	// +optional
	Authentication configv1.AuthenticationStatus `json:"authentication,omitempty,omitzero"`
}
