// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/progress"
)

func asks(t *testing.T, s *kubetest.Server, args ...string) (string, error) {
	t.Helper()
	cmd := NewCreateCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var said strings.Builder
	cmd.SetOut(&said)
	cmd.SetErr(&said)
	cmd.SetArgs(append(args, "--kubeconfig", s.Kubeconfig))
	err := cmd.ExecuteContext(t.Context())
	return said.String(), err
}

func TestCommand(t *testing.T) {
	demo := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	args := []string{"--name=demo", "--encryption-key=key", "--pvc=backups"}
	t.Run("When --wait is not set, it should create a backup and print how to follow it", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, demo.DeepCopy())
		said, err := asks(t, s, append(args, "--backup-name=b")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(And(ContainSubstring("created HCPEtcdBackup clusters-demo/b"), ContainSubstring("kubectl get hcpetcdbackup -n clusters-demo b -w")))
		g.Expect(s.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters-demo", Name: "b"}, &hyperv1.HCPEtcdBackup{})).To(Succeed())
	})
	t.Run("When no name is given, two backups should get different names", func(t *testing.T) {
		g := NewWithT(t)
		o := parsed(t, args...)
		g.Expect(o.request(now).Name).NotTo(Equal(o.request(now.Add(1e9)).Name))
	})
	t.Run("When a flag is invalid, it should write nothing", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, demo.DeepCopy())
		_, err := asks(t, s, "--name=demo")
		g.Expect(err).To(MatchError(ContainSubstring("--encryption-key is required")))
		g.Expect(exit.Code(err)).To(Equal(exit.Usage))
		g.Expect(s.Writes()).To(BeEmpty())
	})
	t.Run("When the API server rejects the backup, the error should name the backup", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, demo.DeepCopy())
		s.Refuse(func(r *http.Request) bool { return r.Method == http.MethodPost })
		_, err := asks(t, s, append(args, "--backup-name=b")...)
		g.Expect(err).To(MatchError(HavePrefix("create HCPEtcdBackup clusters-demo/b: ")))
		g.Expect(exit.Code(err)).To(Equal(exit.Failure))
	})
	t.Run("When the backup is not done in time, it should return an error", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, demo.DeepCopy())
		_, err := asks(t, s, append(args, "--backup-name=b", "--wait", "--timeout=1ms")...)
		g.Expect(err).To(MatchError(ContainSubstring("HCPEtcdBackup clusters-demo/b was not done after 1ms")))
	})
}

// TestFollow checks that follow ends with the backup, and what it reports.
func TestFollow(t *testing.T) {
	key := client.ObjectKey{Namespace: "clusters-demo", Name: "b"}
	follow := func(t *testing.T, progressed string, condition *metav1.Condition, args ...string) (string, error) {
		t.Helper()
		backup := &hyperv1.HCPEtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		backup.Status.Progress = progressed
		if condition != nil {
			condition.Type = hyperv1.HCPEtcdBackupCompleted
			meta.SetStatusCondition(&backup.Status.Conditions, *condition)
		}
		var said strings.Builder
		c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(backup).Build()
		err := parsed(t, args...).follow(t.Context(), c, progress.New(&said, clock.RealClock{}), key)
		return said.String(), err
	}
	for name, tt := range map[string]struct {
		progressed string
		condition  *metav1.Condition
		says, err  string
	}{
		"When the backup has not started, it should name the component that starts it": {"", nil, "waiting for the control-plane-operator to start it", "was not done after"},
		"When the backup is in progress, it should report the progress": {"40 of 80 MiB", &metav1.Condition{Status: metav1.ConditionFalse, Reason: "Running", Message: "it runs"},
			"40 of 80 MiB", "in the way: 40 of 80 MiB"},
		"When only a reason is reported, it should report the reason": {"", &metav1.Condition{Status: metav1.ConditionFalse, Reason: "Running"}, "Running", "in the way: Running"},
		"When the release does not support backups, it should stop and return the message": {"", &metav1.Condition{Status: metav1.ConditionFalse, Reason: hyperv1.BackupNotSupportedReason, Message: "OpenShift"},
			"OpenShift", "HCPEtcdBackup clusters-demo/b failed: OpenShift"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			said, err := follow(t, tt.progressed, tt.condition, "--timeout=30ms")
			g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
			g.Expect(said).To(ContainSubstring(tt.says))
		})
	}
	t.Run("When the backup cannot be read, it should retry", func(t *testing.T) {
		g, looks := NewWithT(t), 0
		ctx, cancel := context.WithCancel(t.Context())
		c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(kube.Scheme).Build(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				if looks++; looks > 1 {
					cancel()
				}
				return http.ErrServerClosed
			},
		})
		var said strings.Builder
		g.Expect(parsed(t).follow(ctx, c, progress.New(&said, clock.RealClock{}), key)).To(MatchError(context.Canceled))
		g.Expect(said.String()).To(ContainSubstring("cannot read HCPEtcdBackup clusters-demo/b"))
	})
}
