// SPDX-License-Identifier: Apache-2.0

package podfailure_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/podfailure"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func messages(findings []podfailure.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Message)
	}
	return all
}

func TestRefusals(t *testing.T) {
	deployment := func(name string, status corev1.ConditionStatus, message string) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: appsv1.DeploymentStatus{
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: status, Reason: "FailedCreate", Message: message}},
		}}
	}
	set := func(replicas int32) appsv1.StatefulSet {
		return appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "etcd", UID: "1"},
			Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.StatefulSetStatus{Replicas: replicas}}
	}
	event := func(uid, message string, ago time.Duration) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Name: "etcd", UID: types.UID(uid)},
			Message: message, LastTimestamp: metav1.NewTime(now.Add(-ago))}
	}
	const quota = `create Pod etcd-0 in StatefulSet etcd failed error: pods "etcd-0" is forbidden: exceeded quota: compute`
	for name, tc := range map[string]struct {
		in   podfailure.Namespace
		want []string
	}{
		"nothing is wrong": {podfailure.Namespace{
			Deployments:  []appsv1.Deployment{deployment("a", corev1.ConditionFalse, "of before")},
			StatefulSets: []appsv1.StatefulSet{set(3)}, Events: []corev1.Event{event("1", quota, 0)},
		}, nil},
		"Pod Security refuses pods of a Deployment": {podfailure.Namespace{Deployments: []appsv1.Deployment{
			deployment("kube-apiserver", corev1.ConditionTrue, `pods "kube-apiserver-1-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot`)}},
			[]string{`Pods of Deployment kube-apiserver cannot be created: forbidden: violates PodSecurity "restricted:latest": runAsNonRoot; ` +
				"an administrator sets the level of the namespace by its annotation hypershift.openshift.io/pod-security-admission-label-override"}},
		"a quota rejects pods of a StatefulSet": {podfailure.Namespace{StatefulSets: []appsv1.StatefulSet{set(0)}, Events: []corev1.Event{
			event("1", "of before", time.Minute), event("1", quota, time.Second), event("2", "of one that was deleted", 0)}},
			[]string{"Pods of StatefulSet etcd cannot be created: forbidden: exceeded quota: compute"}},
		"a new StatefulSet without events": {podfailure.Namespace{StatefulSets: []appsv1.StatefulSet{set(0)}}, nil},
		"a message with line breaks and terminal escapes": {podfailure.Namespace{Deployments: []appsv1.Deployment{
			deployment("a", corev1.ConditionTrue, "one\n\x1b[31mtwo\u202e\xff.")}}, []string{"Pods of Deployment a cannot be created: one [31mtwo ?"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, findings := NewWithT(t), podfailure.Find(tc.in, now)
			g.Expect(messages(findings)).To(Equal(tc.want))
			g.Expect(findings).NotTo(ContainElement(HaveField("Stuck", false)))
		})
	}
}

func TestRestarts(t *testing.T) {
	ended := func(code int32, ago time.Duration) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "line\nno matches for kind\n", FinishedAt: metav1.NewTime(now.Add(-ago))}
	}
	pod := func(mutate func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, ServiceAccountName: "operator"}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 3,
			LastTerminationState: corev1.ContainerState{Terminated: ended(1, time.Minute)}}}
		if mutate != nil {
			mutate(&p)
		}
		return p
	}
	const text, message = "Container c of pod p ended with exit code 1 (Error); restarts: 3", "; last message: line no matches for kind"
	for name, tc := range map[string]struct {
		pod   corev1.Pod
		want  string
		stuck bool
	}{
		"a crashing operator reports its last message": {pod(nil), text + message, true},
		"a single restart is not stuck yet": {pod(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 }),
			"Container c of pod p ended with exit code 1 (Error); restarts: 1" + message, false},
		"a container that has been running for an hour has recovered": {pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = ended(1, time.Hour)
		}), "", false},
		"a pod without a mounted token omits its message":        {pod(func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = ptr.To(false) }), text, true},
		"a pod of the default service account omits its message": {pod(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" }), text, true},
		"a pod with the management API access label reports its message": {pod(func(p *corev1.Pod) {
			p.Spec.AutomountServiceAccountToken = ptr.To(false)
			p.Labels = map[string]string{hyperv1.NeedManagementKASAccessLabel: "true"}
		}), text + message, true},
		"a pod that is being deleted is ignored": {pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }), "", false},
		"a pod of a Job is ignored":              {pod(func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }), "", false},
		"an init container that succeeded": {pod(func(p *corev1.Pod) {
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "i", RestartCount: 4,
				State: corev1.ContainerState{Terminated: ended(0, time.Second)}}}, nil
		}), "", false},
		"an init container that fails": {pod(func(p *corev1.Pod) {
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
		}), text + message, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, findings := NewWithT(t), podfailure.Find(podfailure.Namespace{Pods: []corev1.Pod{tc.pod}}, now)
			if tc.want == "" {
				g.Expect(findings).To(BeEmpty())
				return
			}
			g.Expect(findings).To(Equal([]podfailure.Finding{{Message: tc.want, Stuck: tc.stuck}}))
		})
	}
	t.Run("When a message is long, it should keep only the end", func(t *testing.T) {
		p := pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message = strings.Repeat("x", 5000) + " the end"
		})
		found := podfailure.Find(podfailure.Namespace{Pods: []corev1.Pod{p}}, now)
		NewWithT(t).Expect(found[0].Message).To(HaveSuffix("the end"))
		NewWithT(t).Expect(len(found[0].Message)).To(BeNumerically("<", 600))
	})
}

func TestText(t *testing.T) {
	finding := func(text string) podfailure.Finding { return podfailure.Finding{Message: text} }
	for want, findings := range map[string][]podfailure.Finding{
		"":                    nil,
		"a":                   {finding("a")},
		"a. b. c":             {finding("a"), finding("b"), finding("c")},
		"a. b. c. And 2 more": {finding("a"), finding("b"), finding("c"), finding("d"), finding("e")},
	} {
		t.Run("When findings are joined, the text should be "+want, func(t *testing.T) {
			NewWithT(t).Expect(podfailure.Text(findings)).To(Equal(want))
		})
	}
}
