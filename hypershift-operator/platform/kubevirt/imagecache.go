// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
)

const (
	// cacheRole is the label value of DataVolumes with a disk image for a pool's virtual machines, as in upstream
	// HyperShift.
	cacheRole      = "kv-boot-image-cache"
	cacheRoleLabel = "hypershift.openshift.io/kubevirt-boot-image-role"
	cachePoolLabel = "hypershift.openshift.io/nodepool-uid"
	cacheImage     = "hypershift.openshift.io/kubevirt-boot-image-hash"
)

// cached reports whether the disk of the pool's release must be cached in the cluster of its virtual machines. A disk
// that the pool names itself is not cached.
func cached(pool *hyperv1.NodePool) bool {
	block := pool.Spec.Platform.Kubevirt
	if block == nil || block.RootVolume == nil || block.RootVolume.CacheStrategy == nil {
		return false
	}
	return block.RootVolume.CacheStrategy.Type == hyperv1.KubevirtCachingStrategyPVC && namedDisk(block) == ""
}

// WithoutEffect implements platform.EffectReporter. A disk that the pool names itself is never cached.
func (*Platform) WithoutEffect(pool *hyperv1.NodePool) []string {
	block := pool.Spec.Platform.Kubevirt
	if block == nil || block.RootVolume == nil || block.RootVolume.CacheStrategy == nil || namedDisk(block) == "" ||
		block.RootVolume.CacheStrategy.Type != hyperv1.KubevirtCachingStrategyPVC {
		return nil
	}
	return []string{"platform.kubevirt.rootVolume.cacheStrategy"}
}

// cacheName returns the DataVolume from which the pool's virtual machines are cloned; empty if there is none.
func cacheName(pool *hyperv1.NodePool) string {
	if pool.Status.Platform == nil || pool.Status.Platform.KubeVirt == nil {
		return ""
	}
	return pool.Status.Platform.KubeVirt.CacheName
}

// infraOf returns the location of a pool's virtual machines. If the cluster of a deleted pool is gone, it uses the
// pool's status.
func infraOf(pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) target {
	at := target{user: pool.Namespace, hosted: naming.ControlPlaneNamespaceOf(pool.Namespace, pool.Spec.ClusterName)}
	if hc != nil {
		at.credentials = external(hc)
	} else if status := pool.Status.Platform; status != nil && status.KubeVirt != nil {
		at.credentials = status.KubeVirt.Credentials
	}
	return at
}

// KeepImage implements platform.ImageKeeper. It keeps one DataVolume with the release's disk if the pool enables the
// cache.
func (p *Platform) KeepImage(ctx context.Context, c client.Client, pool platform.Pool) (platform.Kept, error) {
	kept := platform.Kept{Status: &hyperv1.NodePoolPlatformStatus{KubeVirt: &hyperv1.KubeVirtNodePoolStatus{Credentials: external(pool.HostedCluster).DeepCopy()}}}
	disk := image(pool)
	kept.Condition = condition.True(hyperv1.NodePoolValidPlatformImageType, hyperv1.AsExpectedReason, "Bootstrap KubeVirt Image is "+disk)
	at := infraOf(pool.NodePool, pool.HostedCluster)
	if !cached(pool.NodePool) {
		if cacheName(pool.NodePool) != "" {
			if err := p.dropCaches(ctx, c, at, pool.NodePool); err != nil {
				return unkept(kept, pool.NodePool, err)
			}
		}
		if kept.Status.KubeVirt.Credentials == nil {
			kept.Status = nil
		}
		return kept, nil
	}
	name, err := p.keep(ctx, c, at, pool)
	if err != nil {
		return unkept(kept, pool.NodePool, err)
	}
	kept.Status.KubeVirt.CacheName, kept.CheckAgain = name, goodFor
	return kept, nil
}

// unkept reports why the disk is not cached, and keeps the recorded state. It returns an error only if another
// reconcile may resolve it.
func unkept(kept platform.Kept, pool *hyperv1.NodePool, err error) (platform.Kept, error) {
	var failure *infraError
	switch {
	case errors.As(err, &failure):
		kept.Condition = condition.False(hyperv1.NodePoolValidPlatformImageType, failure.reason, "The disk image is not cached: "+failure.Error())
		kept.CheckAgain = cmp.Or(failure.again, firstWait)
	case unknownKind(err):
		kept.Condition = condition.False(hyperv1.NodePoolValidPlatformImageType, hyperv1.NodePoolValidationFailedReason,
			"The disk image is not cached: the cluster for virtual machines does not serve datavolumes.cdi.kubevirt.io, or lacks the namespace; "+
				"install KubeVirt's Containerized Data Importer there, or set spec.platform.kubevirt.rootVolume.cacheStrategy.type to None")
		kept.CheckAgain = lastWait
	default:
		return platform.Kept{}, err
	}
	kept.Missing = true
	kept.Status.KubeVirt.CacheName = cacheName(pool)
	return kept, nil
}

func unknownKind(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// keep finds or creates the cache of the pool's disk, and deletes the caches of other disks.
func (p *Platform) keep(ctx context.Context, c client.Client, at target, pool platform.Pool) (name string, err error) {
	hash := imageHash(image(pool))
	about := cacheRole + "/" + string(pool.NodePool.UID) + "/" + hash
	if last, fresh := p.infra.recall(at, about); fresh && last == cacheName(pool.NodePool) {
		return cacheName(pool.NodePool), nil
	}
	err = p.infra.use(ctx, c, at, about, func(ctx context.Context, where place) error {
		caches, err := caches(ctx, where, pool.NodePool)
		if err != nil {
			return err
		}
		current := slices.IndexFunc(caches, func(o unstructured.Unstructured) bool { return o.GetAnnotations()[cacheImage] == hash })
		for i := range caches {
			if i != current {
				if err := where.Delete(ctx, &caches[i]); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("deleting DataVolume %s with another disk image: %w", caches[i].GetName(), err)
				}
			}
		}
		var cache *unstructured.Unstructured
		if current >= 0 {
			cache = &caches[current]
		} else {
			cache = cacheVolume(pool, where.namespace, hash)
			if err := where.Create(ctx, cache); err != nil {
				return fmt.Errorf("creating a DataVolume for the disk image: %w", err)
			}
		}
		name = cache.GetName()
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return &infraError{reason: reasonFailed,
				message: "it has a DataVolume for the disk image whose name is not a valid Kubernetes name"}
		}
		return nil
	})
	if err == nil {
		p.infra.remember(at, about, name)
	}
	return name, err
}

// caches returns the pool's DataVolumes that are not being deleted, sorted by name.
func caches(ctx context.Context, where place, pool *hyperv1.NodePool) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(dataVolumes.GroupVersion().WithKind(dataVolumes.Kind + "List"))
	err := where.List(ctx, list, client.InNamespace(where.namespace), client.MatchingLabels{cacheRoleLabel: cacheRole, cachePoolLabel: string(pool.UID)})
	if err != nil {
		return nil, fmt.Errorf("listing DataVolumes of namespace %s: %w", where.namespace, err)
	}
	staying := slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil })
	slices.SortFunc(staying, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return staying, nil
}

// imageHash returns the digest of an image that is referenced by digest, or else a hash of its name.
func imageHash(disk string) string {
	if _, digest, named := strings.Cut(disk, "@"); named {
		return digest
	}
	return naming.HashValue([]byte(disk))
}

// cacheVolume returns a DataVolume that the data importer fills at once, even if no pod uses it, and keeps after
// completion.
func cacheVolume(pool platform.Pool, namespace, hash string) *unstructured.Unstructured {
	spec := object{"preallocation": true, "source": source(pool)}
	if volume := settings(pool).RootVolume; volume != nil && volume.Persistent != nil {
		spec["storage"] = storage(volume.Persistent)
	}
	cache := &unstructured.Unstructured{Object: object{"spec": spec}}
	cache.SetGroupVersionKind(dataVolumes)
	cache.SetNamespace(namespace)
	cache.SetGenerateName(cacheRole + "-")
	cache.SetLabels(map[string]string{cacheRoleLabel: cacheRole, cachePoolLabel: string(pool.NodePool.UID), rootVolumeLabel: "true"})
	cache.SetAnnotations(map[string]string{
		cacheImage: hash,
		"cdi.kubevirt.io/storage.bind.immediate.requested": "true",
		"cdi.kubevirt.io/storage.deleteAfterCompletion":    "false",
	})
	return cache
}

// DropImage implements platform.ImageKeeper. It waits for a cluster that may respond again, but not if the user has
// deleted the kubeconfig.
func (p *Platform) DropImage(ctx context.Context, c client.Client, pool platform.Pool) (waitsFor string, err error) {
	if !cached(pool.NodePool) && cacheName(pool.NodePool) == "" {
		return "", nil
	}
	at := infraOf(pool.NodePool, pool.HostedCluster)
	dropped := "dropped/" + string(pool.NodePool.UID)
	if _, done := p.infra.recall(at, dropped); done {
		return "", nil
	}
	err = p.dropCaches(ctx, c, at, pool.NodePool)
	if err == nil {
		p.infra.remember(at, dropped, true)
	}
	var failure *infraError
	if !errors.As(err, &failure) {
		return "", err
	}
	if gone, err := at.abandoned(ctx, c); err != nil || gone {
		return "", err
	}
	return fmt.Sprintf("Waiting to delete the DataVolumes with label %s=%s of namespace %s: %v; delete Secret %s/%s to leave them behind",
		cachePoolLabel, pool.NodePool.UID, at.credentials.InfraNamespace, failure, at.user, at.credentials.InfraKubeConfigSecret.Name), nil
}

func (p *Platform) dropCaches(ctx context.Context, c client.Client, at target, pool *hyperv1.NodePool) error {
	about := "drop/" + string(pool.UID)
	err := p.infra.use(ctx, c, at, about, func(ctx context.Context, where place) error {
		caches, err := caches(ctx, where, pool)
		if err != nil {
			return err
		}
		for i := range caches {
			if err := where.Delete(ctx, &caches[i]); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting DataVolume %s with a disk image: %w", caches[i].GetName(), err)
			}
		}
		return nil
	})
	if unknownKind(err) {
		return nil
	}
	return err
}
