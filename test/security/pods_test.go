// SPDX-License-Identifier: Apache-2.0

package security

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/management"
)

const enforceLabel = "pod-security.kubernetes.io/enforce"

// anyImage returns an image for every tag.
type anyImage struct{}

func (anyImage) ComponentImage(tag string) (string, bool) {
	return "registry.example/" + tag + ":1", true
}

// level returns the Pod Security level that the hosted namespace enforces.
func (o *operator) level() string {
	o.t.Helper()
	namespace := &corev1.Namespace{}
	o.Expect(o.client.Get(o.t.Context(), client.ObjectKey{Name: o.hosted()}, namespace)).To(Succeed())
	o.Expect(namespace.Labels).To(And(
		HaveKeyWithValue("pod-security.kubernetes.io/audit", namespace.Labels[enforceLabel]),
		HaveKeyWithValue("pod-security.kubernetes.io/warn", namespace.Labels[enforceLabel])))
	return namespace.Labels[enforceLabel]
}

// pods returns the pods of the managers, which this operator runs, and those of the control plane, which the
// control-plane-operator runs.
func (o *operator) pods() map[string]corev1.PodTemplateSpec {
	o.t.Helper()
	all := map[string]corev1.PodTemplateSpec{}
	managers := &appsv1.DeploymentList{}
	o.Expect(o.client.List(o.t.Context(), managers, client.InNamespace(o.hosted()))).To(Succeed())
	for _, manager := range managers.Items {
		all[manager.Name] = manager.Spec.Template
	}
	hcp := &hyperv1.HostedControlPlane{}
	o.read(hcp, fixture.ClusterName)
	scope := &component.Scope{
		Client: o.client, HCP: hcp, Version: "1.36.3", Images: anyImage{}, PodUID: ptr.To[int64](1001),
		Infra: &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 30443}, Ignition: component.Endpoint{Host: "192.0.2.10", Port: 30444}},
	}
	for _, c := range v2.Kubernetes(v2.Config{ConfigOperatorImage: "registry.example/hypershift:1"}) {
		obj, err := c.Render(o.t.Context(), scope)
		o.Expect(err).NotTo(HaveOccurred())
		switch workload := obj.(type) {
		case *appsv1.Deployment:
			all[c.Name] = workload.Spec.Template
		case *appsv1.StatefulSet:
			all[c.Name] = withClaims(workload)
		default:
			o.t.Fatalf("component %s is a %T: look at its pods too", c.Name, obj)
		}
	}
	return all
}

// withClaims adds the volumes that the StatefulSet controller would add.
func withClaims(set *appsv1.StatefulSet) corev1.PodTemplateSpec {
	template := set.Spec.Template
	for _, claim := range set.Spec.VolumeClaimTemplates {
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}})
	}
	return template
}

// try asks the API server, in a dry run, whether a pod could be created in the hosted namespace.
func (o *operator) try(template corev1.PodTemplateSpec) error {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName = o.hosted(), "try-"
	pod.Spec.PriorityClassName = "" // This API server has no priority classes of ours.
	return o.client.Create(o.t.Context(), pod, client.DryRunAll)
}

func TestPodsOfAHostedNamespace(t *testing.T) {
	o := newOperator(t, "pods")
	fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), fixture.HostedCluster(o.tenant))...)
	o.pass()
	hcp := &hyperv1.HostedControlPlane{}
	o.read(hcp, fixture.ClusterName)
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "172.30.240.1", Port: 31443}
	o.Expect(o.client.Status().Update(t.Context(), hcp)).To(Succeed())
	cluster, _ := o.pass()
	o.Expect(cluster).NotTo(HaveOccurred())
	o.Expect(o.level()).To(Equal("restricted"))
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	o.Expect(err).NotTo(HaveOccurred())

	pods := o.pods()
	o.Expect(len(pods)).To(BeNumerically(">=", 10), "managers and control plane")
	for name, template := range pods {
		t.Run("When "+name+" is run, it should pass what the namespace enforces", func(t *testing.T) {
			g := NewWithT(t)
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(
				api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec))
			g.Expect(result.Allowed).To(BeTrue(), "%s: %s", result.ForbiddenReason(), result.ForbiddenDetail())
			g.Expect(o.try(template)).To(Succeed())
		})
	}

	for name, template := range pods {
		t.Run("When "+name+" is run, all that it uses of a node should be counted and have an end", func(t *testing.T) {
			g := NewWithT(t)
			for _, volume := range template.Spec.Volumes {
				if volume.EmptyDir != nil {
					g.Expect(volume.EmptyDir.SizeLimit).NotTo(BeNil(), "volume %s", volume.Name)
				}
			}
			for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
				for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
					_, requested := c.Resources.Requests[resource]
					_, limited := c.Resources.Limits[resource]
					g.Expect(requested).To(BeTrue(), "request for %s of container %s", resource, c.Name)
					g.Expect(limited).To(BeTrue(), "limit for %s of container %s", resource, c.Name)
				}
			}
		})
	}

	for attack, hurt := range map[string]func(*corev1.PodSpec){
		"is privileged": func(spec *corev1.PodSpec) {
			spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		},
		"runs as root": func(spec *corev1.PodSpec) {
			spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}
		},
		"mounts the node's files": func(spec *corev1.PodSpec) {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		},
		"uses the node's network": func(spec *corev1.PodSpec) { spec.HostNetwork = true },
	} {
		t.Run("When a Pod "+attack+", it should be refused", func(t *testing.T) {
			template := pods["control-plane-operator"]
			evil := template.DeepCopy()
			hurt(&evil.Spec)
			NewWithT(t).Expect(o.try(*evil)).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
		})
	}
}

func TestLevelOfAHostedNamespace(t *testing.T) {
	for _, tt := range []struct {
		name, tenant, release string
		ofCluster, given      map[string]string
		scc                   bool
		want                  string
	}{
		{name: "When a tenant requests privileged, the namespace should stay restricted", tenant: "loosen", release: fixture.ReleaseImage, want: "restricted",
			ofCluster: map[string]string{hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: "privileged"}},
		{name: "When the payload's operator declares restricted Pods, the namespace should be restricted", tenant: "labelled", release: fixture.OCPImage, scc: true, want: "restricted"},
		{name: "When no admission plugin completes the Pods, the namespace should be baseline", tenant: "plain", release: fixture.OCPImage, want: "baseline"},
		{name: "When a tenant requests privileged for an OpenShift payload, the namespace should be baseline", tenant: "loosened", release: fixture.OCPImage, scc: true, want: "baseline",
			ofCluster: map[string]string{hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: "privileged"}},
		{name: "When the operator of an OpenShift payload has no label, the namespace should be baseline", tenant: "unlabelled", release: fixture.OCPImage, want: "baseline",
			ofCluster: map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: "registry.example/old:1"}},
		{name: "When a tenant overrides the operator's label, the label should still count", tenant: "hidden", release: fixture.OCPImage, scc: true, want: "restricted",
			ofCluster: map[string]string{hyperv1.ControlPlaneOperatorImageLabelsAnnotation: "io.openshift.hypershift.restricted-psa=false"}},
		{name: "When a tenant requests restricted, the namespace should be restricted", tenant: "tighten", release: fixture.OCPImage, want: "restricted",
			ofCluster: map[string]string{
				hyperv1.ControlPlaneOperatorImageAnnotation:         "registry.example/old:1",
				hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: "restricted",
			}},
		{name: "When an administrator sets another level on the namespace, it should be used", tenant: "administrator", release: fixture.OCPImage, want: "privileged",
			given: map[string]string{hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: "privileged", hyperv1.HostedClusterAnnotation: "administrator/demo"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.scc {
				fixture.Serve(t, management.Security)
			}
			o := newOperator(t, tt.tenant)
			if tt.given != nil {
				o.Expect(o.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.hosted(), Annotations: tt.given}})).To(Succeed())
			}
			hc := fixture.HostedCluster(o.tenant)
			hc.Annotations, hc.Spec.Release.Image = tt.ofCluster, tt.release
			fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc)...)
			o.pass()
			o.Expect(o.level()).To(Equal(tt.want))
		})
	}
}
