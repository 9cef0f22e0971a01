// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/objectstore/storetest"
)

var (
	discoveryKey = "demo-abcde" + discoveryPath
	keysKey      = "demo-abcde" + keysPath
)

// patient is the timeout for the local fakes of AWS.
const patient = time.Minute

// withBucket returns a plugin that is configured with the bucket of a store.
func withBucket(t *testing.T, store *storetest.Store) (*Platform, *testingclock.FakePassiveClock) {
	t.Helper()
	options, flags := &Options{}, pflag.NewFlagSet("operator", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse([]string{
		"--oidc-storage-provider-s3-bucket-name=" + storetest.Bucket, "--oidc-storage-provider-s3-region=eu-west-1", "--oidc-storage-provider-s3-endpoint=" + store.URL,
		"--oidc-storage-provider-s3-credentials=" + filepath.Join(store.Dir(t), objectstore.CredentialsKey),
	}); err != nil {
		t.Fatal(err)
	}
	p, err := options.New(platform.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	p.(*Platform).bucket.looks.clock, p.(*Platform).bucket.looks.timeout = clock, patient
	return p.(*Platform), clock
}

func documents(text string) map[string][]byte {
	return map[string][]byte{discoveryPath: []byte(`{"issuer":"` + text + `"}`), keysPath: []byte(`{"keys":[]}`)}
}

func TestPublishing(t *testing.T) {
	g := NewWithT(t)
	store := storetest.New(t)
	p, clock := withBucket(t, store)
	cluster := testCluster()
	publish := func(text string) metav1.Condition {
		t.Helper()
		told, again := p.PublishIssuer(t.Context(), cluster, documents(text))
		g.Expect(again).To(BeNumerically(">", 0), "it looks again")
		return told
	}

	told := publish("first")
	g.Expect(told.Type).To(Equal("ValidOIDCConfiguration"))
	g.Expect(told.Status).To(Equal(metav1.ConditionTrue), told.Message)
	g.Expect(store.Names()).To(Equal([]string{discoveryKey, keysKey}))
	g.Expect(string(store.Objects[discoveryKey])).To(Equal(`{"issuer":"first"}`))

	asked := store.Reads
	publish("first")
	g.Expect(store.Reads).To(Equal(asked), "it has just seen them")
	clock.SetTime(clock.Now().Add(seenFor))
	publish("first")
	g.Expect(store.Reads).To(Equal(asked+2), "it looks again")
	g.Expect(store.Writes).To(Equal(2), "they are there")

	delete(store.Objects, keysKey)
	clock.SetTime(clock.Now().Add(seenFor))
	publish("first")
	g.Expect(store.Names()).To(Equal([]string{discoveryKey, keysKey}), "what somebody removed comes back")

	publish("second")
	g.Expect(string(store.Objects[discoveryKey])).To(Equal(`{"issuer":"second"}`), "a change waits for nothing")

	g.Expect(p.WithdrawIssuer(t.Context(), cluster)).To(Succeed())
	g.Expect(store.Names()).To(BeEmpty())
	g.Expect(p.WithdrawIssuer(t.Context(), cluster)).To(Succeed(), "a second time there is nothing to do")
	g.Expect(publish("second").Status).To(Equal(metav1.ConditionTrue))
	g.Expect(store.Names()).To(HaveLen(2), "what was withdrawn is not taken to be there")
}

func TestWhatIsInTheBucket(t *testing.T) {
	mark := func(owner string) http.Header { return http.Header{"X-Amz-Meta-Hosted-Cluster": {owner}} }
	for _, tc := range []struct {
		name, content, owner string
		status               metav1.ConditionStatus
		left                 string
	}{
		{"When a document belongs to another cluster, it should report it and keep the document", `{"issuer":"mine"}`, "others/demo", metav1.ConditionFalse, `{"issuer":"mine"}`},
		{"When a document has no owner and other content, it should report it and keep the document", `{"issuer":"theirs"}`, "", metav1.ConditionFalse, `{"issuer":"theirs"}`},
		{"When a document has no owner and the same content, it should adopt the document", `{ "issuer": "mine" }`, "", metav1.ConditionTrue, ""},
		{"When a document is an earlier one of the cluster, it should replace it", `{"issuer":"former"}`, "clusters/demo", metav1.ConditionTrue, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			store := storetest.New(t)
			store.Objects[discoveryKey] = []byte(tc.content)
			if tc.owner != "" {
				store.Marks[discoveryKey] = mark(tc.owner)
			}
			p, _ := withBucket(t, store)
			told, _ := p.PublishIssuer(t.Context(), testCluster(), documents("mine"))
			g.Expect(told.Status).To(Equal(tc.status), told.Message)
			if tc.left != "" {
				g.Expect(told.Message).To(ContainSubstring("another infraID"))
				g.Expect(string(store.Objects[discoveryKey])).To(Equal(tc.left))
				return
			}
			g.Expect(string(store.Objects[discoveryKey])).To(Equal(`{"issuer":"mine"}`))
			g.Expect(store.Marks[discoveryKey]).To(Equal(mark("clusters/demo")))
		})
	}
	t.Run("When a cluster is deleted, it should keep another cluster's documents", func(t *testing.T) {
		g := NewWithT(t)
		store := storetest.New(t)
		store.Objects[keysKey], store.Marks[keysKey] = []byte("{}"), mark("others/demo")
		p, _ := withBucket(t, store)
		g.Expect(p.WithdrawIssuer(t.Context(), testCluster())).To(Succeed())
		g.Expect(store.Names()).To(Equal([]string{keysKey}))
	})
}

func TestBucketsThatRefuse(t *testing.T) {
	for _, tc := range []struct {
		name   string
		wrong  func(*storetest.Store)
		status metav1.ConditionStatus
		says   string
		// withdrawn reports that a deletion continues.
		withdrawn bool
	}{
		{"When the bucket is gone, it should report it and let cluster deletions continue", func(s *storetest.Store) { delete(s.Buckets, storetest.Bucket) }, metav1.ConditionFalse, "does not exist", true},
		{"When the credentials were rotated, it should report that they are rejected", func(s *storetest.Store) { s.Key = "ANOTHER" }, metav1.ConditionFalse, "refuses the operator's credentials", false},
		{"When the server does not answer, it should report the status as unknown", func(s *storetest.Store) { s.Close() }, metav1.ConditionUnknown, "connect", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			store := storetest.New(t)
			p, clock := withBucket(t, store)
			tc.wrong(store)
			told, again := p.PublishIssuer(t.Context(), testCluster(), documents("mine"))
			g.Expect(told.Status).To(Equal(tc.status), told.Message)
			g.Expect(told.Message).To(And(ContainSubstring(tc.says), Not(ContainSubstring("hunter2"))))
			g.Expect(again).To(Equal(failedFor))
			clock.SetTime(clock.Now().Add(failedFor / 3))
			same, again := p.PublishIssuer(t.Context(), testCluster(), documents("mine"))
			if diff := cmp.Diff(told, same); diff != "" {
				t.Errorf("another pass (-first +second):\n%s", diff)
			}
			g.Expect(again).To(Equal(failedFor*2/3), "it is not asked at each pass")
			err := p.WithdrawIssuer(t.Context(), testCluster())
			if tc.withdrawn {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
	t.Run("When the credentials file changes, it should use the new credentials", func(t *testing.T) {
		g := NewWithT(t)
		store := storetest.New(t)
		p, clock := withBucket(t, store)
		store.Key = "ANOTHER"
		told, _ := p.PublishIssuer(t.Context(), testCluster(), documents("mine"))
		g.Expect(told.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(os.WriteFile(p.bucket.credentials, []byte("[default]\naws_access_key_id = ANOTHER\naws_secret_access_key = hunter2\n"), 0o600)).To(Succeed())
		clock.SetTime(clock.Now().Add(failedFor))
		told, _ = p.PublishIssuer(t.Context(), testCluster(), documents("mine"))
		g.Expect(told.Status).To(Equal(metav1.ConditionTrue), told.Message)
	})
	t.Run("When the operator no longer has a bucket, it should report how to delete the cluster", func(t *testing.T) {
		p, err := (&Options{}).New(platform.Environment{})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(p.(*Platform).WithdrawIssuer(t.Context(), testCluster())).To(MatchError(ContainSubstring("hypershift.io/aws-oidc-discovery")))
	})
	t.Run("When a flag is missing, it should name all required flags", func(t *testing.T) {
		_, err := (&Options{bucket: bucket{name: "b", region: "r"}}).New(platform.Environment{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--oidc-storage-provider-s3-credentials")))
	})
}
