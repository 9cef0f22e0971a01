// SPDX-License-Identifier: Apache-2.0

package payload_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/payload"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// TestUnreadable distinguishes read errors from missing objects. A read error is retried at once with backoff, and is
// not reported as a wait.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	registry := releasetest.Start(t)
	release := registry.PushRelease(t, kubernetes())
	named := configure(&hyperv1.ClusterConfiguration{
		Proxy: &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "proxy-ca"}}, Image: &configv1.ImageSpec{AdditionalTrustedCA: configv1.ConfigMapNameReference{Name: "registry-ca"}},
	})
	for name, kind := range map[string]string{
		"pull-secret": "Secret", "bootstrap-kubeconfig": "Secret", "ssh-key": "Secret", "kubelet-client-ca": "ConfigMap", "user-ca-bundle": "ConfigMap", "proxy-ca": "ConfigMap", "registry-ca": "ConfigMap",
		"": "HostedControlPlanes",
	} {
		t.Run("When "+kind+" "+name+" cannot be read, it should return a read error, not a wait", func(t *testing.T) {
			t.Parallel()
			g, objs := NewWithT(t), world(registry)
			named(objs)
			builder := fake.NewClientBuilder().WithScheme(scheme(t))
			for _, obj := range objs {
				builder = builder.WithObjects(obj)
			}
			builder = builder.WithObjects(&corev1.ConfigMap{ObjectMeta: meta("proxy-ca"), Data: map[string]string{"ca-bundle.crt": string(registry.CA)}})
			forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, name, errors.New("RBAC"))
			c := builder.WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if k.Name == name {
						return forbidden
					}
					return c.Get(ctx, k, o, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					if name == "" {
						return forbidden
					}
					return c.List(ctx, l, opts...)
				},
			}).Build()
			_, err := (&payload.Generator{Client: c, Namespace: hosted}).Generate(t.Context(), payload.Request{NodePool: "clusters/workers", Release: release})
			g.Expect(err).To(MatchError(forbidden))
			_, isProblem := errors.AsType[*payload.Problem](err)
			g.Expect(isProblem).To(BeFalse())
			g.Expect(err.Error()).To(ContainSubstring(kind))
			g.Expect(err.Error()).To(ContainSubstring(hosted))
		})
	}
}

func TestTwoControlPlanes(t *testing.T) {
	t.Parallel()
	g, registry := NewWithT(t), releasetest.Start(t)
	builder := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(&hyperv1.HostedControlPlane{ObjectMeta: meta("second")})
	for _, obj := range world(registry) {
		builder = builder.WithObjects(obj)
	}
	_, err := (&payload.Generator{Client: builder.Build(), Namespace: hosted}).Generate(t.Context(), payload.Request{})
	g.Expect(err).To(MatchError(And(HavePrefix(payload.ReasonWaiting+": Waiting for one HostedControlPlane"), ContainSubstring("there are 2"))), "it does not take any of them")
}

// TestWhichConfigMaps checks which ConfigMaps cause a new configuration of machines.
func TestWhichConfigMaps(t *testing.T) {
	t.Parallel()
	control := func(proxy *configv1.ProxySpec, image *configv1.ImageSpec) *hyperv1.HostedControlPlane {
		return &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{Configuration: &hyperv1.ClusterConfiguration{Proxy: proxy, Image: image}}}
	}
	proxy := &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "proxy-ca"}}
	image := &configv1.ImageSpec{AdditionalTrustedCA: configv1.ConfigMapNameReference{Name: "registry-ca"}}
	for name, tt := range map[string]struct {
		hcp  *hyperv1.HostedControlPlane
		want []string
	}{
		"nothing":                {&hyperv1.HostedControlPlane{}, nil},
		"an empty configuration": {control(nil, nil), nil},
		"a proxy":                {control(proxy, nil), []string{"proxy-ca"}},
		"registries":             {control(nil, image), []string{"registry-ca"}},
		"both":                   {control(proxy, image), []string{"proxy-ca", "registry-ca"}},
		"a proxy without a CA":   {control(&configv1.ProxySpec{}, image), []string{"registry-ca"}},
	} {
		t.Run("When a control plane has "+name+", it should return the ConfigMaps that it names", func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, candidate := range []string{"proxy-ca", "registry-ca", "another"} {
				if payload.Names(tt.hcp, candidate) {
					got = append(got, candidate)
				}
			}
			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
	for name, want := range map[string]bool{"kubelet-client-ca": true, "user-ca-bundle": true, "proxy-ca": false, "": false} {
		if payload.IsInputConfigMap(name) != want {
			t.Errorf("of %q: %t", name, !want)
		}
	}
}

// TestHostileConfig unpacks malicious content of a token Secret.
func TestHostileConfig(t *testing.T) {
	t.Parallel()
	const limit = 32 << 20
	packed := func(size int64) []byte {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		_, err := io.CopyN(w, zeroes{}, size)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	small, err := payload.Pack([]byte("kind: MachineConfig\n"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(small))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		packed []byte
		size   int
		says   string
	}{
		"is encoded":                  {small, 20, ""},
		"is compressed only":          {raw, 20, ""},
		"has the maximum size":        {packed(limit), limit, ""},
		"grows too large":             {packed(limit + 1), 0, "larger than 33554432 bytes"},
		"is truncated":                {raw[:len(raw)-4], 0, "unexpected EOF"},
		"has a flipped bit":           {append(bytes.Clone(raw[:len(raw)-8]), append([]byte{^raw[len(raw)-8]}, raw[len(raw)-7:]...)...), 0, "checksum"},
		"is plain text":               {[]byte("kind: MachineConfig\n"), 0, "it is not gzip"},
		"is text that looks encoded":  {[]byte(base64.StdEncoding.EncodeToString([]byte("kind: MachineConfig"))), 0, "it is not gzip"},
		"has a few bytes of a header": {raw[:5], 0, "it is not gzip"},
	} {
		t.Run("When a config "+name+", it should unpack completely or fail", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			got, err := payload.Unpack(tt.packed)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				g.Expect(got).To(BeNil())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(got)).To(Equal(tt.size))
		})
	}
	t.Run("When a config is packed twice, the result should be identical", func(t *testing.T) {
		g := NewWithT(t)
		text := []byte(strings.Repeat("kind: MachineConfig\n", 1000))
		one, err := payload.Pack(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(payload.Pack(text)).To(Equal(one))
		g.Expect(len(one)).To(BeNumerically("<", len(text)/10))
	})
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
