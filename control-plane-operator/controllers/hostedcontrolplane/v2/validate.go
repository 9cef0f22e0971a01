// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
)

// Validate says what of a HostedControlPlane the components of the Kubernetes distribution cannot do, and cannot leave out
// either; nil if there is nothing.
func Validate(hcp *hyperv1.HostedControlPlane) error {
	return errors.Join(kubeapiserver.ValidateEncryption(hcp), kubeapiserver.ValidateLists(hcp), validateRestore(hcp),
		validatePlatform(hcp), etcd.ValidateEndpoint(hcp))
}

// Refusals says what components leave out of a HostedControlPlane, since by halves it would be dangerous.
func Refusals(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) ([]error, error) {
	return kubeapiserver.Refusals(ctx, c, hcp)
}

// validatePlatform: the schema takes AWS without its block, as upstream's does, and the block cannot be guessed.
func validatePlatform(hcp *hyperv1.HostedControlPlane) error {
	if hcp.Spec.Platform.Type == hyperv1.AWSPlatform && hcp.Spec.Platform.AWS == nil {
		return errors.New("platform.aws is missing, which platform.type AWS needs: set it")
	}
	return nil
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
