// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"testing"
	"time"

	"filippo.io/age"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// backupName is the name of the key and of the volume of scheduled backups.
const backupName = "scheduled-backups"

// schedule requests one backup for today onto a volume, at a full minute that is at least half a minute away. If that
// minute began before the operator reads the schedule, the backup would run tomorrow.
func (s *suite) schedule(t *testing.T) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	s.must(t, err)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: journey.HostedNamespace(cluster), Name: backupName},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	s.must(t, s.c.Create(t.Context(), claim))
	s.must(t, s.Type(t.Context(), "kubectl", "create", "secret", "generic", "-n", journey.Namespace, backupName, "--from-literal", "recipients="+key.Recipient().String()))
	s.must(t, s.Type(t.Context(), "kubectl", "patch", "hostedcluster", cluster, "-n", journey.Namespace, "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"etcd":{"managed":{"automatedBackup":{"schedule":%q,"encryptionKey":{"name":%q},"storage":{"type":"PVC","pvc":{"claimName":%q}}}}}}}`,
		time.Now().UTC().Add(90*time.Second).Format("4 15 * * *"), backupName, backupName)))
}

// scheduled waits until the backup is complete.
func (s *suite) scheduled(t *testing.T) {
	t.Helper()
	s.must(t, s.Reach(t.Context(), "backup of three members by the schedule", 8*time.Minute, func(ctx context.Context) (bool, string, error) {
		hc := &hyperv1.HostedCluster{}
		if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc); err != nil {
			return false, "", err
		}
		c := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.EtcdBackupSucceeded))
		if c == nil {
			return false, "none yet", nil
		}
		return c.Status == metav1.ConditionTrue, c.Message, nil
	}))
	made := &hyperv1.HCPEtcdBackupList{}
	s.must(t, s.c.List(t.Context(), made, client.InNamespace(journey.HostedNamespace(cluster))))
	NewWithT(t).Expect(made.Items).To(ContainElement(Satisfy(func(b hyperv1.HCPEtcdBackup) bool {
		return b.Status.Size > 0 && b.Status.Revision > 0 && len(b.Status.SHA256) == 64 && b.Spec.Storage.StorageType == hyperv1.PVCBackupStorage
	})), "it was read back from the volume, and is said with its checksum")
}
