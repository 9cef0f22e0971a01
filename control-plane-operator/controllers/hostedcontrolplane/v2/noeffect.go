package v2

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
)

// Validate says what of a HostedControlPlane the components of the Kubernetes distribution cannot do, and that would be
// dangerous to pass over in silence; nil if there is nothing.
func Validate(hcp *hyperv1.HostedControlPlane) error {
	return errors.Join(kubeapiserver.ValidateEncryption(hcp), validateRestore(hcp))
}

// validateRestore: a cluster that starts empty where a restored one was asked for would overwrite what is out there.
func validateRestore(hcp *hyperv1.HostedControlPlane) error {
	managed := hcp.Spec.Etcd.Managed
	if managed == nil || len(managed.Storage.RestoreSnapshotURL) == 0 {
		return nil
	}
	return fmt.Errorf("etcd.managed.storage.restoreSnapshotURL is set, which this control plane cannot restore from; leave it out, " +
		"or restore the volume of etcd by means of the storage")
}

// WithoutEffect lists fields that are set and that mean nothing in the Kubernetes distribution, sorted as they are read.
func WithoutEffect(hcp *hyperv1.HostedControlPlane) []string {
	var fields []string
	add := func(set bool, field string) {
		if set {
			fields = append(fields, field)
		}
	}
	config := hcp.Spec.Configuration
	if config == nil {
		config = &hyperv1.ClusterConfiguration{}
	}
	networking := hcp.Spec.Networking.APIServer
	add(hcp.Spec.FIPS, "fips")
	add(networking != nil && networking.Port != nil, "networking.apiServer.port")
	add(hcp.Spec.UpdateService != "", "updateService")
	add(hcp.Spec.Channel != "", "channel")
	add(hcp.Spec.OperatorConfiguration != nil, "operatorConfiguration")
	add(hcp.Spec.Capabilities != nil && len(hcp.Spec.Capabilities.Enabled)+len(hcp.Spec.Capabilities.Disabled) > 0, "capabilities")
	add(hcp.Spec.AutoNode != nil, "autoNode")
	add(config.OAuth != nil, "configuration.oauth")
	add(config.OperatorHub != nil, "configuration.operatorhub")
	add(config.FeatureGate != nil && config.FeatureGate.FeatureSet != "" && config.FeatureGate.FeatureSet != configv1.CustomNoUpgrade,
		"configuration.featureGate.featureSet")
	return fields
}
