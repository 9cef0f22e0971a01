// SPDX-License-Identifier: Apache-2.0

package security

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/tenantlimits"
)

// guestManifests is the folder of what runs in the guest cluster. The tenant's labels are on pods of the management
// cluster.
const guestManifests = "control-plane-operator/guestcomponents"

// TestLabelsOfServicesAreReserved checks the labels in the selectors of Services and monitors: a pod with such a label
// from a tenant would be taken for one of ours.
func TestLabelsOfServicesAreReserved(t *testing.T) {
	root, keys := os.DirFS("../.."), map[string]string{}
	for _, folder := range []string{"hypershift-operator", "control-plane-operator"} {
		err := fs.WalkDir(root, folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if path == guestManifests {
				return fs.SkipDir
			}
			if entry.IsDir() || !strings.Contains(path, "/manifests/") || !strings.HasSuffix(path, ".yaml") {
				return nil
			}
			raw, err := fs.ReadFile(root, path)
			if err != nil {
				return err
			}
			for _, key := range selected(raw) {
				keys[key] = path
			}
			return nil
		})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	NewWithT(t).Expect(keys).NotTo(BeEmpty())
	for key, path := range keys {
		t.Run("a tenant may not set the label "+key, func(t *testing.T) {
			NewWithT(t).Expect(tenantlimits.ReservedLabel(key)).To(BeTrue(), "%s selects by it", path)
		})
	}
}

// selected returns the label keys with which a manifest selects pods.
func selected(raw []byte) []string {
	var keys []string
	service := &corev1.Service{}
	if yaml.Unmarshal(raw, service) == nil && service.Kind == "Service" {
		for key := range service.Spec.Selector {
			keys = append(keys, key)
		}
		return keys
	}
	other := struct {
		Spec struct {
			Selector, PodSelector metav1.LabelSelector
		}
	}{}
	if yaml.Unmarshal(raw, &other) != nil {
		return nil
	}
	for _, selector := range []metav1.LabelSelector{other.Spec.Selector, other.Spec.PodSelector} {
		for key := range selector.MatchLabels {
			keys = append(keys, key)
		}
		for _, requirement := range selector.MatchExpressions {
			keys = append(keys, requirement.Key)
		}
	}
	return keys
}
