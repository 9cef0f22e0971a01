// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// imagesSeed holds the images that a MAAS may have: synced ones, uploaded ones with a base image, and an uploaded one
// without.
const imagesSeed = `{"boot_resources": [
 {"id": 1, "type": "Synced", "name": "ubuntu/noble", "architecture": "amd64/ga-24.04"},
 {"id": 2, "type": "Synced", "name": "centos/centos9-stream", "architecture": "amd64/generic"},
 {"id": 3, "type": "Uploaded", "name": "golden", "architecture": "amd64/generic", "filetype": "tgz", "base_image": "ubuntu/jammy"},
 {"id": 4, "type": "Uploaded", "name": "trixie-raid", "architecture": "amd64/generic", "filetype": "tgz", "base_image": "debian/13"},
 {"id": 5, "type": "Uploaded", "name": "kubernetes-node", "architecture": "amd64/generic", "filetype": "tgz"},
 {"id": 6, "type": "Uploaded", "name": "noble-by-name", "architecture": "amd64/generic", "filetype": "tgz", "base_image": "rhel/9"}]}`

// site is a MAAS behind its HTTP API, and a plugin that calls it.
type site struct {
	*simtest.Site
	plugin *Platform
	secret *corev1.Secret
	server *httptest.Server
	asked  atomic.Int32
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Site: simtest.New(t, imagesSeed)}
	s.Clock.SetTime(time.Now()) // The client signs requests with the real time.
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.asked.Add(1); s.ServeHTTP(w, r) }))
	t.Cleanup(s.server.Close)
	guard, err := maas.NewGuard("127.0.0.0/8", "")
	if err != nil {
		t.Fatal(err)
	}
	s.plugin = New(Options{Guard: guard, Clock: testingclock.NewFakeClock(simtest.Start), CheckTimeout: time.Minute})
	s.secret = credentials(map[string]string{"MAAS_ENDPOINT": s.server.URL + "/MAAS", "MAAS_API_KEY": s.Key("alice")})
	return s
}

func (s *site) choose(t *testing.T, pool platform.Pool, running bool) platform.UserData {
	t.Helper()
	chosen, err := s.plugin.UserDataFormat(t.Context(), testClient(t, s.secret), pool, running)
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

func TestUserDataFormat(t *testing.T) {
	ignition, cloudConfig := hyperv1.UserDataIgnition, hyperv1.UserDataCloudConfig
	s := newSite(t)
	for _, tc := range []struct {
		distribution releaseinfo.Distribution
		image        string
		said, want   hyperv1.UserDataFormat
		why          string
	}{
		{releaseinfo.Kubernetes, "", "", ignition, "does not say what the custom image custom/kubernetes-node is made of"},
		{releaseinfo.Kubernetes, "custom/kubernetes-node", "", ignition, "set spec.platform.maas.userDataFormat to CloudConfig"},
		{releaseinfo.Kubernetes, "custom/golden", "", cloudConfig, "since MAAS says that custom/golden is made of ubuntu/jammy"},
		{releaseinfo.Kubernetes, "golden", "", cloudConfig, "since MAAS says that golden is made of ubuntu/jammy"},
		{releaseinfo.Kubernetes, "custom/trixie-raid", "", cloudConfig, "is made of debian/13"},
		{releaseinfo.Kubernetes, "custom/noble-by-name", "", ignition, "since MAAS says that custom/noble-by-name is made of rhel/9"},
		{releaseinfo.Kubernetes, "centos/centos9-stream", "", cloudConfig, "brings the image centos/centos9-stream itself"},
		{releaseinfo.Kubernetes, "ubuntu/noble", "", cloudConfig, "brings the image ubuntu/noble itself"},
		{releaseinfo.Kubernetes, "noble", "", cloudConfig, "brings the image noble itself"},
		{releaseinfo.Kubernetes, "ubuntu/24.04", "", cloudConfig, "as the name of the image ubuntu/24.04 says, since MAAS lists no such image"},
		{releaseinfo.Kubernetes, "22.04", "", cloudConfig, "lists no such image"},
		{releaseinfo.Kubernetes, "resolute", "", cloudConfig, "lists no such image"},
		{releaseinfo.Kubernetes, "debian/trixie", "", cloudConfig, "lists no such image"},
		{releaseinfo.Kubernetes, "rhcos-4.20", "", ignition, "lists no such image"},
		{releaseinfo.Kubernetes, "ubuntu-core/24", "", ignition, "lists no such image"},
		{releaseinfo.Kubernetes, "custom/kubernetes-node", cloudConfig, cloudConfig, "as spec.platform.maas.userDataFormat says"},
		{releaseinfo.Kubernetes, "custom/golden", ignition, ignition, "as spec.platform.maas.userDataFormat says"},
		{releaseinfo.OpenShift, "custom/golden", "", ignition, "CoreOS"},
	} {
		t.Run("When "+string(tc.distribution)+" runs on image "+tc.image+" with userDataFormat "+string(tc.said)+", it should read "+string(tc.want), func(t *testing.T) {
			chosen := s.choose(t, testPool(tc.distribution, hyperv1.MAASNodePoolPlatform{Image: tc.image, UserDataFormat: tc.said}), false)
			g := NewWithT(t)
			g.Expect(chosen.Format).To(Equal(tc.want))
			g.Expect(chosen.Why).To(ContainSubstring(tc.why))
		})
	}
	t.Run("When several pools need the list of images, it should call MAAS once", func(t *testing.T) {
		for _, image := range []string{"custom/golden", "custom/kubernetes-node"} {
			s.choose(t, testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{Image: image}), false)
		}
		NewWithT(t).Expect(s.asked.Load()).To(BeEquivalentTo(1))
	})
	t.Run("When a partition is to be wiped, it should choose Ignition for any base image", func(t *testing.T) {
		pool := testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{Image: "custom/golden", DiskWipe: &hyperv1.MAASDiskWipe{Enabled: ptr.To(true)}})
		NewWithT(t).Expect(s.choose(t, pool, false).Format).To(Equal(ignition))
	})
}

// TestNamesOfImages checks that a deployment may refer to an image by several names, none of which means another
// image.
func TestNamesOfImages(t *testing.T) {
	synced, uploaded := "Synced", "Uploaded"
	for _, tc := range []struct {
		kind, listed, asked string
		want                bool
	}{
		{synced, "ubuntu/noble", "ubuntu/noble", true}, {synced, "ubuntu/noble", "noble", true}, {synced, "ubuntu/noble", "ubuntu", false},
		{synced, "ubuntu/noble", "custom/noble", false}, {synced, "ubuntu/noble", "custom/ubuntu/noble", false}, {synced, "rocky", "custom/rocky", false},
		{uploaded, "golden", "custom/golden", true}, {uploaded, "golden", "golden", true}, {uploaded, "golden", "other/golden", false},
		{uploaded, "windows/2022", "windows/2022", true}, {uploaded, "windows/2022", "custom/windows/2022", false},
	} {
		t.Run("When "+tc.asked+" is requested and MAAS lists "+tc.kind+" "+tc.listed+", it should match only the same image", func(t *testing.T) {
			NewWithT(t).Expect(is(maas.BootResource{Type: tc.kind, Name: tc.listed}, tc.asked)).To(Equal(tc.want))
		})
	}
}

// TestUbuntuByName checks the names that MAAS accepts for an Ubuntu image without "ubuntu/", from 22.04 on.
func TestUbuntuByName(t *testing.T) {
	for _, release := range strings.Fields(`jammy kinetic lunar mantic noble oracular plucky questing resolute
		22.04 22.10 23.04 23.10 24.04 24.10 25.04 25.10 26.04`) {
		t.Run("When an image is "+release+", it should read cloud-config", func(t *testing.T) {
			NewWithT(t).Expect(byName(release)).To(Equal(hyperv1.UserDataCloudConfig))
			NewWithT(t).Expect(byName("custom/" + release)).To(Equal(hyperv1.UserDataIgnition))
		})
	}
	for _, other := range []string{"focal", "20.04", "9", ""} {
		t.Run("When an image is "+other+", it should read Ignition", func(t *testing.T) {
			NewWithT(t).Expect(byName(other)).To(Equal(hyperv1.UserDataIgnition))
		})
	}
}

// TestUserDataFormatStays checks that the format does not change, because a change would replace all machines of a
// pool.
func TestUserDataFormatStays(t *testing.T) {
	golden := func() platform.Pool {
		return testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{Image: "custom/golden"})
	}
	keep := func(pool platform.Pool, chosen platform.UserData) platform.Pool {
		pool.NodePool.Annotations = map[string]string{hyperv1.NodePoolUserDataFormatAnnotation: chosen.Keep}
		return pool
	}
	t.Run("When MAAS has answered, it should keep the format for the image and not call MAAS again", func(t *testing.T) {
		g, s := NewWithT(t), newSite(t)
		first := s.choose(t, golden(), false)
		g.Expect(first.Keep).NotTo(BeEmpty())
		s.server.Close()
		s.plugin = New(Options{})
		again := s.choose(t, keep(golden(), first), true)
		g.Expect(again).To(Equal(first))
		other := keep(testPool(releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{Image: "custom/golden-2"}), first)
		g.Expect(s.choose(t, other, false).Why).To(ContainSubstring("could not be asked"), "another image is another question")
	})
	t.Run("When a pool already has machines and no stored format, it should keep Ignition", func(t *testing.T) {
		g, s := NewWithT(t), newSite(t)
		chosen := s.choose(t, golden(), true)
		g.Expect(chosen.Format).To(Equal(hyperv1.UserDataIgnition))
		g.Expect(s.choose(t, keep(golden(), chosen), false)).To(Equal(chosen), "also when they are all gone")
		g.Expect(s.asked.Load()).To(BeZero())
	})
	t.Run("When MAAS is unreachable, it should use the name of the image and ask MAAS again later", func(t *testing.T) {
		g, s := NewWithT(t), newSite(t)
		s.server.Close()
		chosen := s.choose(t, golden(), false)
		g.Expect(chosen.Format).To(Equal(hyperv1.UserDataIgnition))
		g.Expect(chosen.Why).To(And(ContainSubstring("as the name of the image custom/golden says, since MAAS could not be asked"), Not(ContainSubstring(s.Key("alice")))))
		g.Expect(chosen.Keep).To(BeEmpty())
		g.Expect(chosen.Again).To(Equal(firstWait))
	})
	t.Run("When too many other MAAS requests are in progress, the pool should wait", func(t *testing.T) {
		g, s := NewWithT(t), newSite(t)
		for i := range parallelChecks {
			s.plugin.images.open[fmt.Sprint("others-", i)] = true
		}
		chosen := s.choose(t, golden(), false)
		g.Expect(chosen.Waiting).To(ContainSubstring("Waiting for MAAS to say what the image custom/golden is made of"))
		g.Expect(chosen.Again).To(Equal(busyWait))
	})
	t.Run("When the credentials are missing, it should use the name of the image", func(t *testing.T) {
		g, s := NewWithT(t), newSite(t)
		s.secret.Name = "another"
		g.Expect(s.choose(t, golden(), false)).To(Equal(platform.UserData{Format: hyperv1.UserDataIgnition, Why: "as the name of the image custom/golden says"}))
	})
	for _, nonsense := range []string{"CloudConfig", "CloudConfig of custom/golden", "Shell of custom/golden, x", " of custom/golden, x"} {
		t.Run("When a user writes \""+nonsense+"\" into the annotation, MAAS should be asked", func(t *testing.T) {
			NewWithT(t).Expect(newSite(t).choose(t, keep(golden(), platform.UserData{Keep: nonsense}), false).Why).To(ContainSubstring("since MAAS says"))
		})
	}
}

func TestValidateUserData(t *testing.T) {
	wipe := func(on *bool) *hyperv1.MAASDiskWipe { return &hyperv1.MAASDiskWipe{Enabled: on} }
	for _, tc := range []struct {
		name         string
		distribution releaseinfo.Distribution
		block        hyperv1.MAASNodePoolPlatform
		refusal      string
	}{
		{"When an OpenShift pool sets userDataFormat to CloudConfig, it should return an error", releaseinfo.OpenShift,
			hyperv1.MAASNodePoolPlatform{Image: "custom/rhcos", UserDataFormat: hyperv1.UserDataCloudConfig}, "userDataFormat is CloudConfig, but the nodes of an OpenShift release"},
		{"When the payload is not known yet, it should accept CloudConfig", "",
			hyperv1.MAASNodePoolPlatform{Image: "custom/rhcos", UserDataFormat: hyperv1.UserDataCloudConfig}, ""},
		{"When diskWipe is enabled for an Ubuntu image, it should return an error", releaseinfo.Kubernetes,
			hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble", DiskWipe: wipe(ptr.To(true))}, "diskWipe.enabled goes with userDataFormat Ignition only"},
		{"When diskWipe is disabled for an Ubuntu image, it should accept the pool", releaseinfo.Kubernetes,
			hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble", DiskWipe: wipe(ptr.To(false))}, ""},
		{"When the image is stock Ubuntu, it should accept the pool", releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble"}, ""},
		{"When diskWipe is enabled for an Ignition image, it should accept the pool", releaseinfo.Kubernetes,
			hyperv1.MAASNodePoolPlatform{Image: "custom/a", DiskWipe: wipe(ptr.To(true))}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := (&Platform{}).ValidateNodePool(testPool(tc.distribution, tc.block))
			g := NewWithT(t)
			if tc.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
		})
	}
}
