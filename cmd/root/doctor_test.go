// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestDoctor checks a management cluster from before its installation until a cluster can be created.
func TestDoctor(t *testing.T) {
	u := newUser(t)
	t.Setenv("MAAS_API_KEY", "")
	create := []string{
		"create", "cluster", "none", "--name", "demo", "--release-image", "registry.example/release:1",
		"--external-api-server-address", "192.0.2.1",
	}
	o := u.types("", create...)
	u.Expect(o.code).To(Equal(1))
	u.Expect(o.stderr).To(And(ContainSubstring("HyperShift is not installed"), ContainSubstring("--skip-preflight")))
	u.Expect(apierrors.IsNotFound(u.gets(&corev1.Namespace{}, "", "clusters"))).To(BeTrue(), "nothing is created")

	u.succeeds("", "install", "--install-scope", "crds", "--wait-until-crds-established")
	o = u.types("", create...)
	u.Expect(o.code).To(Equal(1))
	u.Expect(o.stderr).To(ContainSubstring("no StorageClass is the default one"))
	o = u.types("", "doctor", "--external-api-server-address", "192.0.2.1")
	u.Expect(o.code).To(Equal(1))
	u.Expect(o.stdout).To(And(MatchRegexp(`(?m)^ok +cluster +version +Kubernetes v`), MatchRegexp(`(?m)^failed +cluster +storage`),
		MatchRegexp(`(?m)^skipped +maas +endpoint +set --maas-endpoint`)))
	u.Expect(o.stderr).To(MatchRegexp(`Error: \d+ of \d+ checks failed`))

	u.Expect(u.client.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "x.example",
	})).To(Succeed())
	o = u.succeeds("", create...)
	u.Expect(o.stderr).To(ContainSubstring("Warning: cluster operator: no operator is installed; run: hypershift install\n"))

	o = u.types("", "doctor", "cluster", "demo", "-o", "json")
	u.Expect(o.code).To(Equal(1))
	var report struct {
		Status, Cause string
		Checks        []map[string]string
	}
	u.Expect(json.Unmarshal([]byte(o.stdout), &report)).To(Succeed())
	u.Expect(report.Status).To(Equal("failed"))
	u.Expect(report.Cause).To(Equal("HostedCluster clusters/demo: the operator has not reported on it yet"))
	u.Expect(report.Checks).To(ContainElement(And(HaveKeyWithValue("part", "NodePool"), HaveKeyWithValue("check", "clusters/demo"))))

	o = u.types("", "preflight", "cluster", "none")
	u.Expect(o.code).To(Equal(1))
	u.Expect(o.stdout).To(ContainSubstring("there is no HostedCluster clusters/none"))
	u.Expect(u.gets(&hyperv1.HostedCluster{}, "clusters", "demo")).To(Succeed(), "a check changes nothing")
}
