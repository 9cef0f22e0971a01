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

// Validate returns the settings of a HostedControlPlane that the components of the Kubernetes distribution can neither
// apply nor ignore; nil if there are none.
func Validate(hcp *hyperv1.HostedControlPlane) error {
	return errors.Join(kubeapiserver.ValidateEncryption(hcp), kubeapiserver.ValidateLists(hcp), validateRestore(hcp),
		validatePlatform(hcp), etcd.ValidateEndpoint(hcp))
}

// Refusals returns the settings of a HostedControlPlane that components do not apply, because a partial configuration
// would be dangerous.
func Refusals(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) ([]error, error) {
	return kubeapiserver.Refusals(ctx, c, hcp)
}

// validatePlatform requires the AWS block. As in upstream HyperShift, the schema accepts AWS without it, and there is
// no default for it.
func validatePlatform(hcp *hyperv1.HostedControlPlane) error {
	if hcp.Spec.Platform.Type == hyperv1.AWSPlatform && hcp.Spec.Platform.AWS == nil {
		return errors.New("platform.aws is missing, which platform.type AWS needs: set it")
	}
	return nil
}

// validateRestore rejects a restore that is not supported. Without this check the cluster would start empty, and
// overwrite external state.
func validateRestore(hcp *hyperv1.HostedControlPlane) error {
	managed := hcp.Spec.Etcd.Managed
	if managed == nil || len(managed.Storage.RestoreSnapshotURL) == 0 {
		return nil
	}
	return fmt.Errorf("etcd.managed.storage.restoreSnapshotURL is set, which this control plane cannot restore from; leave it out, " +
		"or restore the volume of etcd by means of the storage")
}
