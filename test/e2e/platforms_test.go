// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/journey"
	"github.com/openshift/hypershift/test/standin/lab"
)

// agents is the namespace for Agents. It contains none: the fake provider uses machines of the simulated MAAS.
const agents = "agents"

// other is a cluster of a platform other than MAAS; its name is the name of the platform in the commands.
type other struct {
	platform            string
	cluster, pool       []string
	providerID, machine string
}

// others returns all platforms except MAAS. Platform None has no provider and no provider ID: the user provides a
// machine.
func (s *suite) others(t *testing.T) []other {
	infra, iam := s.awsFiles(t)
	byNodePort := []string{"--service-publishing-strategy", "NodePort"}
	return []other{
		{"kubevirt", byNodePort, []string{"--containerdisk", lab.Disk}, "kubevirt://", "kubevirtmachines"},
		{"agent", []string{"--agent-namespace", agents}, []string{"--agentLabelSelector", "size=medium"}, "agent://", "agentmachines"},
		{"aws", append(byNodePort, "--infra-json", infra, "--iam-json", iam), []string{"--subnet-id", "subnet-1", "--ami", lab.AMI}, "aws:///", "awsmachines"},
		{"none", nil, nil, "", ""},
	}
}

// awsFiles writes the files that the commands of upstream HyperShift create for resources in AWS.
func (s *suite) awsFiles(t *testing.T) (infra, iam string) {
	t.Helper()
	roles := map[string]string{}
	for _, name := range []string{"ingress", "imageRegistry", "storage", "network", "kubeCloudController", "nodePoolManagement", "controlPlaneOperator"} {
		roles[name+"ARN"] = "arn:aws:iam::123456789012:role/" + name
	}
	for name, content := range map[string]map[string]any{
		"infra.json": {"infraID": "aws-e2e00", "region": "eu-west-1", "vpcID": "vpc-1", "zones": []map[string]string{{"name": "eu-west-1a", "subnetID": "subnet-1"}}},
		"iam.json":   {"infraID": "aws-e2e00", "profileName": "aws-worker", "roles": roles},
	} {
		raw, err := json.Marshal(content)
		s.must(t, err)
		s.must(t, os.WriteFile(s.Path(name), raw, 0o600))
	}
	return s.Path("infra.json"), s.Path("iam.json")
}

// installFlags returns the flags of an installation with fake providers.
func (s *suite) installFlags(t *testing.T) []string {
	t.Helper()
	specs, err := images.Pullspecs(env.Env{Dir: s.Dir, Bin: s.Bin}.Images(), env.Registry)
	s.must(t, err)
	flags := []string{"--allowed-registries", env.Registry + "," + path.Dir(lab.Disk)}
	for _, platform := range []string{"agent", "aws", "kubevirt"} {
		flags = append(flags, "--"+platform+"-capi-provider-image", specs["standin"])
	}
	return flags
}

// platforms creates and deletes a cluster of each platform except MAAS, two in parallel. Four control planes would
// request more than the two CPUs of the management cluster's node.
func (s *suite) platforms(t *testing.T) {
	s.Say("The providers of AWS, KubeVirt and the assisted service are stand-ins, with machines of the simulated MAAS: there is no cloud here.")
	s.must(t, s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: agents, Annotations: map[string]string{hyperv1.AgentsForAnnotation: journey.Namespace}}}))
	for pair := range slices.Chunk(s.others(t), 2) {
		s.comeAndGo(t, pair)
	}
	s.nothingLeft(t)
}

func (s *suite) comeAndGo(t *testing.T, clusters []other) {
	t.Helper()
	for _, o := range clusters {
		s.createOther(t, o)
	}
	for _, o := range clusters {
		s.reach(t, o.platform+": control plane available", long, journey.ClusterAvailable(s.c, o.platform))
		s.must(t, s.SaveKubeconfig(t.Context(), o.platform))
	}
	var own []string
	for _, o := range clusters {
		if o.machine == "" {
			own = append(own, s.bringMachine(t, o.platform))
		}
	}
	for _, o := range clusters {
		ready := []journey.Check{s.letIn(o.platform), s.NodesReady(o.platform, 1)}
		if o.machine != "" {
			ready = []journey.Check{s.NodesReady(o.platform, 1), journey.PoolReplicas(s.c, o.platform, 1), s.providerIDs(o)}
		}
		s.reach(t, o.platform+": a NodePool with a Ready Node", long, journey.All(ready...))
	}
	s.destroyOthers(t, clusters)
	for _, systemID := range own {
		_, err := s.maas.ReleaseMachine(t.Context(), systemID, maas.ReleaseRequest{})
		s.must(t, err)
	}
}

// createOther runs the commands of a user. If the platform has a fake provider, createOther writes a Secret with the
// location of the provider's machines.
func (s *suite) createOther(t *testing.T, o other) {
	t.Helper()
	release, err := s.ReleaseImage(t.Context())
	s.must(t, err)
	argv := []string{"hypershift", "create", "cluster", o.platform, "--name", o.platform, "--node-pool-replicas=-1", "--release-image", release,
		"--pull-secret", s.Path("pull-secret.json"), "--additional-trust-bundle", env.Env{Dir: s.Dir, Bin: s.Bin}.RegistryCA()}
	t.Cleanup(func() { s.removeAfterFailure(t, o.platform, o.platform) })
	s.must(t, s.Type(t.Context(), append(argv, o.cluster...)...))
	argv = []string{"hypershift", "create", "nodepool", o.platform, "--name", o.platform, "--cluster-name", o.platform, "--replicas", "1"}
	s.must(t, s.Type(t.Context(), append(argv, o.pool...)...))
	if o.machine == "" {
		return
	}
	key, err := os.ReadFile(s.keyFile)
	s.must(t, err)
	s.reach(t, o.platform+": the stand-in knows its lab", soon, func(ctx context.Context) (bool, string, error) {
		err := s.c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: journey.HostedNamespace(o.platform), Name: lab.SecretName},
			Data:       map[string][]byte{maas.SecretKeyEndpoint: []byte(env.MAASURL), maas.SecretKeyAPIKey: bytes.TrimSpace(key)},
		})
		return client.IgnoreAlreadyExists(err) == nil, "", client.IgnoreAlreadyExists(err)
	})
}

// providerIDs checks that the Node and the machine of the platform's kind have the same provider ID.
func (s *suite) providerIDs(o other) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		node, err := s.Read(ctx, s.Guest(o.platform, "get", "nodes", "-o", "jsonpath={.items[*].spec.providerID}")...)
		if err != nil {
			return false, "", err
		}
		machine, err := s.Read(ctx, "kubectl", "get", o.machine, "-n", journey.HostedNamespace(o.platform), "-o", "jsonpath={.items[*].spec.providerID}")
		return strings.HasPrefix(node, o.providerID) && node == machine, "the Node says " + node, err
	}
}

// bringMachine follows docs/how-to/own-machines.md: it deploys a machine of the user with the pool's user-data. The
// machine keeps its name in MAAS.
func (s *suite) bringMachine(t *testing.T, pool string) (systemID string) {
	t.Helper()
	var userData []byte
	s.reach(t, pool+": user-data for the user's machine", soon, func(ctx context.Context) (bool, string, error) {
		secrets := &corev1.SecretList{}
		err := s.c.List(ctx, secrets, client.InNamespace(journey.HostedNamespace(pool)))
		for i := range secrets.Items {
			if strings.HasPrefix(secrets.Items[i].Name, "user-data-"+pool+"-") {
				userData = secrets.Items[i].Data["value"]
			}
		}
		return len(userData) > 0, "", err
	})
	m, err := s.maas.AllocateMachine(t.Context(), maas.AllocateRequest{
		AgentName: "a machine of the user's", Pool: workers, NotPodTypes: []string{"lxd"},
	})
	s.must(t, err)
	_, err = s.maas.DeployMachine(t.Context(), m.SystemID, maas.DeployRequest{DistroSeries: ignitionImage, UserData: userData})
	s.must(t, err)
	return m.SystemID
}

// letIn approves the certificate requests of a cluster's nodes. The user must do so if no Machine identifies the
// nodes.
func (s *suite) letIn(cluster string) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		guest, err := s.GuestClient(cluster)
		if err != nil {
			return false, "", err
		}
		requests := &certificatesv1.CertificateSigningRequestList{}
		if err := guest.List(ctx, requests); err != nil {
			return false, "", err
		}
		for i := range requests.Items {
			if len(requests.Items[i].Status.Conditions) > 0 {
				continue
			}
			if _, err := s.Read(ctx, s.Guest(cluster, "certificate", "approve", requests.Items[i].Name)...); err != nil {
				return false, "", err
			}
		}
		return true, "", nil
	}
}

func (s *suite) destroyOthers(t *testing.T, all []other) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	for _, o := range all {
		group.Go(func() error {
			_, err := s.Read(ctx, "hypershift", "destroy", "cluster", o.platform, "--name", o.platform, "--namespace", journey.Namespace)
			return err
		})
		s.Say("$ hypershift destroy cluster %s --name %s", o.platform, o.platform)
	}
	s.must(t, group.Wait())
	for _, o := range all {
		hosted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: journey.HostedNamespace(o.platform)}}
		NewWithT(t).Expect(apierrors.IsNotFound(s.c.Get(t.Context(), client.ObjectKeyFromObject(hosted), hosted))).To(BeTrue(), hosted.Name)
	}
}
