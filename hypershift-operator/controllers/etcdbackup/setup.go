// SPDX-License-Identifier: Apache-2.0

package etcdbackup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/pace"
)

// asking is the backoff between checks for the kind. `install --exclude-etcd` omits it, maybe permanently, and a later
// install adds it without a change that would restart the operator. The delay grows from 5 s to 5 minutes.
var asking = wait.Backoff{Duration: 5 * time.Second, Factor: 2, Steps: 7, Cap: 5 * time.Minute}

// SetupWithManager watches HCPEtcdBackups once the management cluster serves their kind.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := asking.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			return served(ctx, mgr.GetRESTMapper()), nil
		})
		if err != nil {
			return nil //nolint:nilerr // the operator ends
		}
		if err := ctrl.NewControllerManagedBy(mgr).For(&hyperv1.HCPEtcdBackup{}).WithOptions(pace.Options()).Complete(
			pace.ByNamespace(r)); err != nil {
			return fmt.Errorf("setting up the HCPEtcdBackup controller: %w", err)
		}
		return nil
	}))
}

// served reports whether the management cluster serves the kind. If the check fails, it reports false, and the caller
// tries again.
func served(ctx context.Context, mapper meta.RESTMapper) bool {
	kind := hyperv1.GroupVersion.WithKind("HCPEtcdBackup")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		klog.FromContext(ctx).Error(err, "Cannot determine yet whether the management cluster has the kind HCPEtcdBackup")
	}
	return err == nil
}
