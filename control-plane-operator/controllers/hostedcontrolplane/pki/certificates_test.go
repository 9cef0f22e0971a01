// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

// issued lists the certificates of a control plane: Secret, signer, usage, keys of the Secret, name, and groups. API
// servers, etcd, kubelets and dashboards identify their peers by these names and mount these keys. OpenShift payloads
// have the names and keys compiled in.
const issued = `
capi-provider-client         kube-control-plane-signer        client tls.crt,tls.key,ca.crt          hypershift:capi-provider
cluster-api-client           kube-control-plane-signer        client tls.crt,tls.key,ca.crt          hypershift:cluster-api
cluster-autoscaler-client    kube-control-plane-signer        client tls.crt,tls.key,ca.crt          hypershift:cluster-autoscaler
etcd-client-tls              etcd-signer                      client etcd-client.crt,etcd-client.key etcd-client kubernetes
etcd-metrics-client-tls      etcd-metrics-signer              client etcd-client.crt,etcd-client.key etcd-metrics-client kubernetes
etcd-peer-tls                etcd-signer                      both   peer.crt,peer.key               etcd-discovery kubernetes
etcd-server-tls              etcd-signer                      both   server.crt,server.key           etcd-server kubernetes
hcco-client                  hcco-signer                      client tls.crt,tls.key,ca.crt          system:hosted-cluster-config kubernetes,system:serviceaccounts:openshift
ignition-server              root-ca                          both   tls.crt,tls.key,ca.crt          ignition-server openshift
ignition-server-client       kube-control-plane-signer        client tls.crt,tls.key,ca.crt          hypershift:ignition-server
ignition-server-serving-cert ignition-server-ca-cert          server tls.crt,tls.key,ca.crt          ignition-server kubernetes
kas-aggregator-crt           kas-aggregator-client-signer     client tls.crt,tls.key,ca.crt          system:openshift-aggregator kubernetes
kas-bootstrap-client         cluster-signer-ca                client tls.crt,tls.key,ca.crt          system:serviceaccount:openshift-machine-config-operator:node-bootstrapper system:serviceaccounts:openshift-machine-config-operator,system:serviceaccounts,system:bootstrappers
kas-kubelet-client-crt       kube-apiserver-to-kubelet-signer client tls.crt,tls.key,ca.crt          system:kube-apiserver kubernetes
kas-server-crt               root-ca                          server tls.crt,tls.key,ca.crt          kubernetes kubernetes
kas-server-private-crt       root-ca                          server tls.crt,tls.key,ca.crt          kubernetes-private kubernetes
kcm-server                   root-ca                          both   tls.crt,tls.key,ca.crt          kube-controller-manager openshift
kube-controller-manager      kube-control-plane-signer        client tls.crt,tls.key,ca.crt          system:kube-controller-manager kubernetes
kube-scheduler-client        kube-control-plane-signer        client tls.crt,tls.key,ca.crt          system:kube-scheduler kubernetes
metrics-client               cluster-signer-ca                client tls.crt,tls.key,ca.crt          system:serviceaccount:hypershift:prometheus kubernetes
scheduler-server             root-ca                          both   tls.crt,tls.key,ca.crt          kube-scheduler openshift
system-admin-client          system-admin-signer              client tls.crt,tls.key,ca.crt          system:admin system:masters
tunnel-server                root-ca                          server tls.crt,tls.key,ca.crt          konnectivity-server kubernetes
`

func TestCertificates(t *testing.T) {
	var got []string
	all := listed(t, func(*hyperv1.HostedControlPlane, *component.Infra) {})
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		use := map[[2]bool]string{{true, false}: "server", {false, true}: "client", {true, true}: "both"}[[2]bool{c.leaf.Server, c.leaf.Client}]
		keys := strings.Trim(strings.Join([]string{c.keys.Cert, c.keys.Key, c.keys.CA}, ","), ",")
		got = append(got, strings.TrimSpace(fmt.Sprintln(name, c.signer, use, keys, c.leaf.CommonName, strings.Join(c.leaf.Organizations, ","))))
	}
	var want []string
	for line := range strings.Lines(strings.TrimSpace(issued)) {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHosts checks the host names in server certificates: clients reject a server whose certificate does not name it.
func TestHosts(t *testing.T) {
	want := map[string]string{
		"etcd-peer-tls": `*.etcd-discovery.clusters-demo.svc *.etcd-discovery.clusters-demo.svc.cluster.local
			etcd-0.etcd-discovery.clusters-demo.svc etcd-1.etcd-discovery.clusters-demo.svc etcd-2.etcd-discovery.clusters-demo.svc
			127.0.0.1 ::1`,
		"etcd-server-tls": `etcd-client etcd-client.clusters-demo.svc etcd-client.clusters-demo.svc.cluster.local *.etcd-discovery.clusters-demo.svc
			*.etcd-discovery.clusters-demo.svc.cluster.local localhost`,
		"ignition-server":              `ignition-server ignition-server.clusters-demo.svc ignition-server.clusters-demo.svc.cluster.local`,
		"ignition-server-serving-cert": `ignition-server ignition-server.clusters-demo.svc ignition-server.clusters-demo.svc.cluster.local 192.0.2.11`,
		"kas-server-crt": `localhost 127.0.0.1 ::1 kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local
			openshift openshift.default openshift.default.svc openshift.default.svc.cluster.local api.demo.hypershift.local
			192.0.2.10 172.31.0.1`,
		"kas-server-private-crt": `kube-apiserver kube-apiserver.clusters-demo.svc kube-apiserver.clusters-demo.svc.cluster.local`,
		"kcm-server": `kube-controller-manager kube-controller-manager.clusters-demo.svc
			kube-controller-manager.clusters-demo.svc.cluster.local localhost`,
		"scheduler-server": `kube-scheduler kube-scheduler.clusters-demo.svc kube-scheduler.clusters-demo.svc.cluster.local localhost`,
		"tunnel-server":    `konnectivity-server konnectivity-server.clusters-demo.svc konnectivity-server.clusters-demo.svc.cluster.local`,
	}
	for name, c := range listed(t, func(*hyperv1.HostedControlPlane, *component.Infra) {}) {
		t.Run("When the certificate is "+name+" it should contain exactly the expected names", func(t *testing.T) {
			// A host name that the cluster does not have is an empty string, which certificates omit.
			if diff := cmp.Diff(strings.Fields(want[name]), strings.Fields(strings.Join(c.leaf.Hosts, " "))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
