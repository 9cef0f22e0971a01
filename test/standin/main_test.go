// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestInPlaceOfProviders checks that the fake provider accepts the arguments of the real providers, as in the
// operator's manifests.
func TestInPlaceOfProviders(t *testing.T) {
	for platform, kind := range map[string]string{"aws": "AWSCluster", "agent": "AgentCluster", "kubevirt": "KubevirtCluster"} {
		t.Run("When it is started as the provider of "+platform+", it should select its contract and find its mounts", func(t *testing.T) {
			g := NewWithT(t)
			raw, err := os.ReadFile(filepath.Join("../../hypershift-operator/platform", platform, "manifests/deployment.yaml"))
			g.Expect(err).NotTo(HaveOccurred())
			deployment := &appsv1.Deployment{}
			g.Expect(yaml.UnmarshalStrict(raw, deployment)).To(Succeed())
			manager := deployment.Spec.Template.Spec.Containers[0]
			args := strings.Split(strings.ReplaceAll(strings.Join(manager.Args, "\n"), "$(MY_NAMESPACE)", "hosted"), "\n")
			if platform == "agent" {
				args = append(args, "--agent-namespace=agents") // The operator's plugin adds this flag.
			}
			o, err := parse(args)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(o.namespace).To(Equal("hosted"))
			g.Expect(o.elect).To(BeTrue())
			played := o.contract()
			g.Expect(played.Kind).To(Equal(kind))
			g.Expect(o.health).To(Equal(fmt.Sprintf(":%d", manager.Ports[0].ContainerPort)), "where the probes look")
			for file := range played.Files {
				mounted := false
				for _, mount := range manager.VolumeMounts {
					mounted = mounted || strings.HasPrefix(file, mount.MountPath+"/")
				}
				g.Expect(mounted).To(BeTrue(), file)
			}
		})
	}
	t.Run("When the namespace is missing, the error should say so", func(t *testing.T) {
		_, err := parse([]string{"--leader-elect"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--namespace is missing")))
	})
}
