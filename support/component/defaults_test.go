// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// rendered returns the Deployment of a component in a control plane that edit changes.
func rendered(t *testing.T, edit func(*Scope), options Options) *appsv1.Deployment {
	t.Helper()
	s := newScope()
	if edit != nil {
		edit(s)
	}
	c := web(func(c *Component) { c.Name = "web"; c.Options = options })
	obj, err := c.Render(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*appsv1.Deployment)
}

func highlyAvailable(s *Scope) { s.HCP.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable }

func annotated(key, value string) func(*Scope) {
	return func(s *Scope) { s.HCP.Annotations = map[string]string{key: value} }
}

func TestReplicas(t *testing.T) {
	dedicated := func(s *Scope) { highlyAvailable(s); annotated(topologyAnnotation, dedicatedTopology)(s) }
	cases := []struct {
		name               string
		edit               func(*Scope)
		options            Options
		want               int32
		surge, unavailable int
	}{
		{"single", nil, Options{HighlyAvailableReplicas: 3}, 1, 1, 0},
		{"highly available", highlyAvailable, Options{}, 2, 1, 0},
		{"highly available and serves requests", highlyAvailable, Options{RequestServing: true}, 2, 1, 1},
		{"highly available with three", highlyAvailable, Options{HighlyAvailableReplicas: 3}, 3, 0, 1},
		{"highly available with one", highlyAvailable, Options{HighlyAvailableReplicas: 1}, 1, 1, 0},
		{"highly available but runs once", highlyAvailable, Options{Singleton: true}, 1, 1, 0},
		{"on dedicated nodes", dedicated, Options{RequestServing: true, HighlyAvailableReplicas: 3}, 2, 1, 1},
		{"being debugged", annotated(debugAnnotation, "other,web"), Options{}, 0, 1, 0},
	}
	for _, tc := range cases {
		t.Run("When a component is "+tc.name+", it should have the matching replicas and rollout strategy", func(t *testing.T) {
			g := NewWithT(t)
			d := rendered(t, tc.edit, tc.options)
			g.Expect(*d.Spec.Replicas).To(Equal(tc.want))
			g.Expect(d.Spec.Strategy.RollingUpdate.MaxSurge.IntValue()).To(Equal(tc.surge))
			g.Expect(d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue()).To(Equal(tc.unavailable))
		})
	}
}

func TestPodDefaults(t *testing.T) {
	t.Run("When a Pod has no options, it should be labelled, unprivileged and without a token", func(t *testing.T) {
		g := NewWithT(t)
		d := rendered(t, nil, Options{})
		pod := d.Spec.Template
		g.Expect(d.Labels).To(HaveKeyWithValue(managedByLabel, "control-plane-operator"))
		g.Expect(pod.Labels).To(HaveKeyWithValue(componentLabel, "web"))
		g.Expect(pod.Labels).To(HaveKeyWithValue(hostedControlPlaneLabel, namespace))
		g.Expect(pod.Labels).NotTo(HaveKey(managementAccessLabel))
		g.Expect(*pod.Spec.AutomountServiceAccountToken).To(BeFalse())
		g.Expect(*pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
		g.Expect(pod.Spec.Containers[0].SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
		g.Expect(pod.Spec.Containers[0].VolumeMounts).To(ContainElement(corev1.VolumeMount{Name: "tmp-dir", MountPath: "/tmp"}))
		g.Expect(pod.Annotations).To(HaveKeyWithValue(safeToEvictAnnotation, "tmp-dir"))
		g.Expect(pod.Spec.PriorityClassName).To(Equal("hypershift-control-plane"))
		g.Expect(*pod.Spec.Volumes[0].ConfigMap.DefaultMode).To(Equal(int32(0o644)))
		g.Expect(*pod.Spec.Volumes[1].Secret.DefaultMode).To(Equal(int32(0o640)))
		g.Expect(pod.Spec.SecurityContext.RunAsUser).To(BeNil(), "the management cluster or the image chooses")
		g.Expect(*pod.Spec.SecurityContext.RunAsNonRoot).To(BeTrue())
		g.Expect(pod.Spec.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
		g.Expect(pod.Spec.Affinity.PodAntiAffinity).To(BeNil())
	})

	t.Run("When a manifest adds capabilities, it should keep only the one that a restricted namespace allows", func(t *testing.T) {
		g := NewWithT(t)
		container := corev1.Container{SecurityContext: &corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_BIND_SERVICE"}},
		}}
		setContainer(&container)
		g.Expect(container.SecurityContext.Capabilities).To(Equal(&corev1.Capabilities{
			Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"ALL"},
		}))
	})

	t.Run("When a Pod serves requests, needs management access and spans zones, it should get the matching settings", func(t *testing.T) {
		g := NewWithT(t)
		pod := rendered(t, highlyAvailable, Options{RequestServing: true, ManagementAccess: true, MultiZone: true, Priority: PriorityAPICritical}).Spec.Template
		g.Expect(pod.Labels).To(HaveKeyWithValue(managementAccessLabel, "true"))
		g.Expect(pod.Labels).To(HaveKeyWithValue(requestServingLabel, "true"))
		g.Expect(*pod.Spec.AutomountServiceAccountToken).To(BeTrue())
		g.Expect(pod.Spec.PriorityClassName).To(Equal("hypershift-api-critical"))
		g.Expect(pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution).To(BeEmpty(), "zones are a preference")
		g.Expect(pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution).To(ConsistOf(HaveField("PodAffinityTerm.TopologyKey", zoneTopology)))
		g.Expect(pod.Spec.TopologySpreadConstraints).To(ConsistOf(And(
			HaveField("TopologyKey", hostTopology), HaveField("WhenUnsatisfiable", corev1.DoNotSchedule), HaveField("MaxSkew", int32(1)))))
		g.Expect(pod.Spec.Tolerations).To(ContainElement(HaveField("Key", requestServingNodeKey)))
	})

	for name, tc := range map[string]struct {
		edit      func(*Scope)
		singleton bool
		want      map[string]*int64
	}{
		"When a highly available control plane has a singleton component, it should leave a failed node after a minute": {
			highlyAvailable, true, map[string]*int64{corev1.TaintNodeNotReady: ptr.To[int64](60), corev1.TaintNodeUnreachable: ptr.To[int64](60)}},
		"When the user tolerates one of these taints, it should keep the user's toleration": {
			func(s *Scope) {
				highlyAvailable(s)
				s.HCP.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists}}
			}, true, map[string]*int64{corev1.TaintNodeNotReady: ptr.To[int64](60), corev1.TaintNodeUnreachable: nil}},
		"When a component has several replicas, it should leave the tolerations to Kubernetes":          {highlyAvailable, false, map[string]*int64{}},
		"When the control plane is not highly available, it should leave the tolerations to Kubernetes": {nil, true, map[string]*int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]*int64{}
			for _, toleration := range rendered(t, tc.edit, Options{Singleton: tc.singleton}).Spec.Template.Spec.Tolerations {
				if strings.HasPrefix(toleration.Key, "node.kubernetes.io/") {
					got[toleration.Key] = toleration.TolerationSeconds
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}

	t.Run("When the HostedControlPlane sets placement, labels and priorities, it should apply them to the Pod", func(t *testing.T) {
		g := NewWithT(t)
		pod := rendered(t, func(s *Scope) {
			s.HCP.Annotations = map[string]string{
				"hypershift.openshift.io/control-plane-priority-class": "gold", restartDateAnnotation: "today",
			}
			s.HCP.Spec.NodeSelector = map[string]string{"a": "b"}
			s.HCP.Spec.Tolerations = []corev1.Toleration{{Key: "reserved"}}
			s.HCP.Spec.Labels = map[string]string{"team": "metal", "app": "not mine to change", managementAccessLabel: "true"}
			s.PodUID = ptr.To[int64](1042)
		}, Options{}).Spec.Template
		g.Expect(pod.Spec.PriorityClassName).To(Equal("gold"))
		g.Expect(pod.Annotations).To(HaveKeyWithValue(restartDateAnnotation, "today"))
		g.Expect(pod.Spec.NodeSelector).To(Equal(map[string]string{"a": "b"}))
		g.Expect(pod.Spec.Tolerations).To(ContainElement(HaveField("Key", "reserved")))
		g.Expect(pod.Labels).To(HaveKeyWithValue("team", "metal"))
		g.Expect(pod.Labels).To(HaveKeyWithValue("app", "web"), "the selector's label stays")
		g.Expect(pod.Labels).NotTo(HaveKey(managementAccessLabel), "what a pod may reach is not a tenant's to say")
		g.Expect(*pod.Spec.SecurityContext.RunAsUser).To(Equal(int64(1042)))
		g.Expect(*pod.Spec.SecurityContext.FSGroup).To(Equal(int64(1042)))
	})

	t.Run("When request serving has dedicated nodes, it should require them", func(t *testing.T) {
		g := NewWithT(t)
		pod := rendered(t, annotated(topologyAnnotation, dedicatedTopology), Options{RequestServing: true}).Spec.Template
		terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		g.Expect(terms[0].MatchExpressions).To(HaveLen(2))
	})
}

func TestThrift(t *testing.T) {
	chosen := func(s *Scope) { s.HCP.Spec.ControllerAvailabilityPolicy = hyperv1.SingleReplica }
	for name, tc := range map[string]struct {
		edit func(*Scope)
		env  []corev1.EnvVar
		want []corev1.EnvVar
	}{
		"When the control plane has single replicas, it should lower GOGC to save memory": {edit: chosen, want: []corev1.EnvVar{{Name: "GOGC", Value: "50"}}},
		"When the container already sets GOGC, it should keep that value":                 {edit: chosen, env: []corev1.EnvVar{{Name: "GOGC", Value: "200"}}, want: []corev1.EnvVar{{Name: "GOGC", Value: "200"}}},
		"When the control plane is highly available, it should not set GOGC":              {edit: highlyAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope()
			tc.edit(s)
			pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Env: tc.env}}}
			setThrift(s.HCP, pod)
			NewWithT(t).Expect(pod.Containers[0].Env).To(Equal(tc.want))
		})
	}
}

func TestRequestOverrides(t *testing.T) {
	t.Run("When an annotation sets requests, it should override the manifest", func(t *testing.T) {
		g := NewWithT(t)
		d := rendered(t, annotated(requestOverridePrefix+"web.web", "cpu=2, memory=3Gi"), Options{})
		requests := d.Spec.Template.Spec.Containers[0].Resources.Requests
		g.Expect(requests.Cpu().String()).To(Equal("2"))
		g.Expect(requests.Memory().String()).To(Equal("3Gi"))
	})
	for _, wrong := range []string{"cpu", "cpu=much", "cpu=-1", ""} {
		t.Run("When an annotation says "+wrong+", it should return an error that shows the format", func(t *testing.T) {
			s := newScope()
			annotated(requestOverridePrefix+"web.web", wrong)(s)
			_, err := web(func(c *Component) { c.Name = "web" }).Render(t.Context(), s)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("write it as in cpu=500m,memory=1Gi")))
		})
	}
}

func TestUserCAs(t *testing.T) {
	brought := func(s *Scope) {
		s.HCP.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "user-ca-bundle"}
	}
	t.Run("When the user provides CAs, every container should trust them, the system's and its own", func(t *testing.T) {
		g, s := NewWithT(t), newScope()
		brought(s)
		pod := &corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "a"}, {Name: "own", Env: []corev1.EnvVar{{Name: "SSL_CERT_DIR", Value: "/own"}}}},
			InitContainers: []corev1.Container{{Name: "b"}},
		}
		trustUserCAs(s.HCP, pod)
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			want := "/etc/ssl/certs:/etc/pki/tls/certs:/etc/pki/user-ca"
			if c.Name == "own" {
				want = "/own:/etc/pki/user-ca"
			}
			g.Expect(c.Env).To(ConsistOf(corev1.EnvVar{Name: "SSL_CERT_DIR", Value: want}))
			g.Expect(c.VolumeMounts).To(HaveLen(1))
		}
	})
	for _, tc := range []struct {
		name    string
		options Options
		edit    func(*Scope)
		trusts  bool
	}{
		{"When a component asks for CAs and the user provides some, it should trust them", Options{UserCAs: true}, brought, true},
		{"When a component asks for CAs and the user provides none, it should not change", Options{UserCAs: true}, nil, false},
		{"When a component does not ask for CAs, it should not change, so that new CAs do not roll it", Options{}, brought, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			template := rendered(t, tc.edit, tc.options).Spec.Template
			NewWithT(t).Expect(equality.Semantic.DeepEqual(template, rendered(t, nil, Options{}).Spec.Template)).To(Equal(!tc.trusts))
		})
	}
}
