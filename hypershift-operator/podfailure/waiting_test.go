// SPDX-License-Identifier: Apache-2.0

package podfailure_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/hypershift-operator/podfailure"
)

func TestWaiting(t *testing.T) {
	pod := func(reason, message string, age time.Duration) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}}
		return p
	}
	event := func(uid, message string, ago time.Duration) corev1.Event {
		e := corev1.Event{Reason: podfailure.FailedMount, Message: message, LastTimestamp: metav1.NewTime(now.Add(-ago))}
		e.InvolvedObject.UID = "1"
		if uid != "" {
			e.InvolvedObject.UID = "2"
		}
		return e
	}
	secret := `MountVolume.SetUp failed for volume "kubeconfig" : secret "service-network" not found`
	key := `MountVolume.SetUp failed for volume "ca" : references non-existent config key: ca.crt`
	for name, tc := range map[string]struct {
		pod    corev1.Pod
		events []corev1.Event
		want   []podfailure.Finding
	}{
		"a Secret for an environment variable is missing": {
			pod: pod("CreateContainerConfigError", `secret "x" not found`, time.Hour),
			want: []podfailure.Finding{
				{Message: `Container c of pod p cannot start: CreateContainerConfigError: secret "x" not found`, Stuck: true},
			},
		},
		"an image cannot be pulled and the registry's response is omitted": {
			pod:  pod("ImagePullBackOff", "10.0.0.1 answers secret things", time.Hour),
			want: []podfailure.Finding{{Message: "Container c of pod p cannot start: ImagePullBackOff", Stuck: true}},
		},
		"mounted objects and keys are missing": {
			pod: pod("ContainerCreating", "", time.Hour),
			events: []corev1.Event{
				event("", secret, time.Minute), event("", key, time.Second), event("", secret, time.Second),
				event("other", `MountVolume.SetUp failed for volume "v" : secret "others" not found`, 0),
				event("", `MountVolume.SetUp failed for volume "v" : secret "former" not found`, time.Hour),
				event("", `MountVolume.SetUp failed for volume "v" : rpc error: 10.0.0.1 refused`, 0),
			},
			want: []podfailure.Finding{
				{Message: "Pod p cannot start: volume ca: references non-existent config key: ca.crt", Stuck: true},
				{Message: `Pod p cannot start: volume kubeconfig: secret "service-network" not found`, Stuck: true},
			},
		},
		"a new pod that waits for its Secret is not stuck yet": {
			pod: pod("ContainerCreating", "", time.Second), events: []corev1.Event{event("", secret, 0)},
			want: []podfailure.Finding{{Message: `Pod p cannot start: volume kubeconfig: secret "service-network" not found`}},
		},
		"a pod that starts normally": {pod: pod("ContainerCreating", "", time.Hour)},
		"a pod that runs": {
			pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, events: []corev1.Event{event("", secret, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := podfailure.Find(podfailure.Namespace{Pods: []corev1.Pod{tc.pod}, Events: tc.events}, now)
			NewWithT(t).Expect(found).To(HaveLen(len(tc.want)))
			for i := range tc.want {
				NewWithT(t).Expect(found[i]).To(Equal(tc.want[i]))
			}
		})
	}
}
