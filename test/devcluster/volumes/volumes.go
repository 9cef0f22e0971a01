// SPDX-License-Identifier: Apache-2.0

// Package volumes creates PersistentVolumes for the claims of one StorageClass. Each volume is a folder of the node
// that the scheduler chose for the claim's first pod.
package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/hypershift/test/devcluster/wake"
)

const (
	// provisionedBy is the annotation with the provisioner of a PersistentVolume.
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	// selectedNode is the annotation with the node that the scheduler selected for a claim.
	selectedNode = "volume.kubernetes.io/selected-node"
)

// resync is the interval of a reconcile without changes; retry is the pause after a failure.
const (
	resync = 5 * time.Minute
	retry  = time.Second
)

// Provisioner serves the StorageClass of the same name.
type Provisioner struct {
	// Client is a client of the cluster.
	Client kubernetes.Interface
	// Name is the provisioner name in the StorageClass.
	Name string
	// Class is the name of the StorageClass.
	Class string
	// Node is the name of the node whose volumes it creates.
	Node string
	// Dir is the node's folder of the volumes.
	Dir string
	// Report is called with failures; they are retried.
	Report func(error)
}

// Run serves until the context ends.
func (p *Provisioner) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(p.Client, resync)
	core := factory.Core().V1()
	poke := make(chan struct{}, 1)
	for _, informer := range []cache.SharedIndexInformer{core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()} {
		if _, err := informer.AddEventHandler(wake.OnChange(poke)); err != nil {
			return fmt.Errorf("watching claims and volumes: %w", err)
		}
	}
	claims, volumes := core.PersistentVolumeClaims().Lister(), core.PersistentVolumes().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		var again <-chan time.Time
		if err := p.reconcile(ctx, claims, volumes); err != nil && ctx.Err() == nil {
			p.Report(err)
			again = time.After(retry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-poke:
		case <-again:
		}
	}
}

// reconcile creates a volume for each claim that has none yet, and removes the volumes whose claims are gone.
func (p *Provisioner) reconcile(ctx context.Context, claims corelisters.PersistentVolumeClaimLister, volumes corelisters.PersistentVolumeLister) error {
	allClaims, err := claims.List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	for _, claim := range allClaims {
		if p.waits(claim) {
			errs = append(errs, p.provision(ctx, claim))
		}
	}
	allVolumes, err := volumes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, volume := range allVolumes {
		if p.released(volume) {
			errs = append(errs, p.remove(ctx, volume))
		}
	}
	return errors.Join(errs...)
}

func (p *Provisioner) waits(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == p.Class &&
		claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil && claim.Annotations[selectedNode] == p.Node
}

func (p *Provisioner) released(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[provisionedBy] == p.Name && volume.Annotations[selectedNode] == p.Node && volume.Status.Phase == corev1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// provision creates the folder before the volume: a pod may use the volume immediately.
func (p *Provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	volume := p.volume(claim)
	dir := volume.Spec.HostPath.Path
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	// Any user of a container may write: nothing changes the owner of a folder on the node.
	if err := os.Chmod(dir, 0o777); err != nil {
		return fmt.Errorf("making the folder of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	_, err := p.Client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making a volume for claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// volume returns the volume of a claim. Its name contains the claim's UID, so creating it twice gives one volume.
func (p *Provisioner) volume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: p.Name, selectedNode: p.Node}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              p.Class,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			VolumeMode:                    claim.Spec.VolumeMode,
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.Node}}},
			}}}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(p.Dir, name)},
			},
		},
	}
}

// remove deletes the data before the volume: without the volume, nothing would refer to the data.
func (p *Provisioner) remove(ctx context.Context, volume *corev1.PersistentVolume) error {
	if err := os.RemoveAll(filepath.Join(p.Dir, volume.Name)); err != nil {
		return fmt.Errorf("deleting the data of volume %s: %w", volume.Name, err)
	}
	err := p.Client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting volume %s: %w", volume.Name, err)
	}
	return nil
}
