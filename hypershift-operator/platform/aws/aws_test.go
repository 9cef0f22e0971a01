// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/openshift/hypershift/api/aws/v1beta2"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

func arn(name string) string { return "arn:aws:iam::123456789012:role/" + name }

func testCluster() platform.Cluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.InfraID = "demo-abcde"
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{
		Region: "eu-west-1",
		RolesRef: hyperv1.AWSRolesRef{
			IngressARN: arn("ingress"), ImageRegistryARN: arn("registry"), StorageARN: arn("storage"), NetworkARN: arn("network"),
			KubeCloudControllerARN: arn("cloud"), NodePoolManagementARN: arn("pools"), ControlPlaneOperatorARN: arn("operator"),
		},
	}}
	return platform.Cluster{HostedCluster: hc, Namespace: "clusters-demo", OperatorImage: "operator:1"}
}

func testClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := hyperv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := awsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&hyperv1.AWSEndpointService{}).Build()
}

func TestInfraCluster(t *testing.T) {
	g := NewWithT(t)
	cluster := testCluster()
	g.Expect((&Platform{}).InfraCluster(cluster)).To(BeNil(), "there is no control plane")
	cluster.ControlPlane = &hyperv1.HostedControlPlane{}
	g.Expect((&Platform{}).InfraCluster(cluster)).To(BeNil(), "its API server has no address")
	cluster.ControlPlane.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example.com", Port: 443}
	cluster.HostedCluster.Spec.Platform.AWS.CloudProviderConfig = &hyperv1.AWSCloudProviderConfig{VPC: "vpc-1"}
	cluster.HostedCluster.Spec.Platform.AWS.ResourceTags = []hyperv1.AWSResourceTag{{Key: "team", Value: "blue"}}
	object := (&Platform{}).InfraCluster(cluster)
	infra := object.Object.(*awsv1.AWSCluster)
	infra.Annotations = map[string]string{"somebody": "else"}
	g.Expect(object.Mutate()).To(Succeed())
	object.MutateStatus()
	want := &awsv1.AWSCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", Annotations: map[string]string{"somebody": "else", "cluster.x-k8s.io/managed-by": "external"}},
		Spec: awsv1.AWSClusterSpec{
			Region: "eu-west-1", Network: awsv1.NetworkSpec{VPC: awsv1.VPCSpec{ID: "vpc-1"}},
			ControlPlaneEndpoint: awsv1.APIEndpoint{Host: "api.example.com", Port: 443}, AdditionalTags: map[string]string{"team": "blue"},
		},
		Status: awsv1.AWSClusterStatus{Ready: true},
	}
	if diff := cmp.Diff(want, infra); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	t.Run("When machines get public addresses, it should mark the pools' subnets as public", func(t *testing.T) {
		g := NewWithT(t)
		cluster.HostedCluster.Annotations = map[string]string{"hypershift.openshift.io/aws-machine-public-ips": "true"}
		cluster.NodePools = poolsIn("subnet-2", "subnet-1", "subnet-2", "")
		object := (&Platform{}).InfraCluster(cluster)
		g.Expect(object.Mutate()).To(Succeed())
		g.Expect(object.Object.(*awsv1.AWSCluster).Spec.Network.Subnets).To(Equal(
			[]awsv1.SubnetSpec{{ID: "subnet-1", IsPublic: true}, {ID: "subnet-2", IsPublic: true}}))
	})
}

func TestValidateHostedCluster(t *testing.T) {
	g := NewWithT(t)
	hc := testCluster().HostedCluster
	g.Expect((&Platform{}).ValidateHostedCluster(hc)).To(Succeed())
	hc.Spec.Platform.AWS.RolesRef.NetworkARN = "network"
	hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{KMS: &hyperv1.KMSSpec{AWS: &hyperv1.AWSKMSSpec{}}}
	g.Expect((&Platform{}).ValidateHostedCluster(hc)).To(MatchError(And(
		ContainSubstring(`rolesRef.networkARN is "network"`), ContainSubstring("spec.secretEncryption.kms.aws.auth.awsKms"))))
	hc.Spec.Platform.AWS.RolesRef = hyperv1.AWSRolesRef{}
	g.Expect((&Platform{}).ValidateHostedCluster(hc)).To(MatchError(ContainSubstring("rolesRef.imageRegistryARN")))
	hc.Spec.Platform.AWS = nil
	g.Expect((&Platform{}).ValidateHostedCluster(hc)).To(MatchError(ContainSubstring("spec.platform.aws is missing")))
}

func TestCredentials(t *testing.T) {
	t.Run("When the roles are set, it should create a credentials file for each component", func(t *testing.T) {
		g := NewWithT(t)
		cluster, c := testCluster(), testClient(t)
		cluster.HostedCluster.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS,
			KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{Auth: hyperv1.AWSKMSAuthSpec{AWSKMSRoleARN: arn("kms")}}}}
		credentials, err := (&Platform{}).ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionTrue))
		secrets := &corev1.SecretList{}
		g.Expect(c.List(t.Context(), secrets, client.InNamespace(cluster.Namespace))).To(Succeed())
		got := map[string]string{}
		for _, secret := range secrets.Items {
			got[secret.Name] = string(secret.Data["credentials"])
		}
		file := func(name string) string {
			return "[default]\nrole_arn = " + arn(name) + "\nweb_identity_token_file = /var/run/secrets/openshift/serviceaccount/token\n" +
				"sts_regional_endpoints = regional\nregion = eu-west-1\n"
		}
		want := map[string]string{
			"cloud-controller-creds": file("cloud"), "node-management-creds": file("pools"), "control-plane-operator-creds": file("operator"),
			"cloud-network-config-controller-creds": file("network"), "ebs-cloud-credentials": file("storage"), "kms-creds": file("kms"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("When a role is missing, it should name the role and write nothing", func(t *testing.T) {
		g := NewWithT(t)
		cluster, c := testCluster(), testClient(t)
		cluster.HostedCluster.Spec.Platform.AWS.RolesRef.StorageARN = ""
		credentials, err := (&Platform{}).ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(credentials.Condition.Message).To(ContainSubstring("storageARN"))
		secrets := &corev1.SecretList{}
		g.Expect(c.List(t.Context(), secrets)).To(Succeed())
		g.Expect(secrets.Items).To(BeEmpty())
	})
	t.Run("When a Secret of that name belongs to another owner, it should not change it", func(t *testing.T) {
		g := NewWithT(t)
		cluster := testCluster()
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "node-management-creds"}, Data: map[string][]byte{"credentials": []byte("theirs")}}
		c := testClient(t, theirs)
		_, err := (&Platform{}).ReconcileCredentials(t.Context(), c, cluster)
		g.Expect(err).To(MatchError(ContainSubstring("node-management-creds")))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
		g.Expect(string(theirs.Data["credentials"])).To(Equal("theirs"))
	})
}

func TestMachines(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	is := func(conditionType string, status metav1.ConditionStatus, reason string) contract.Condition {
		return contract.Condition{Type: conditionType, Status: status, Reason: reason, Message: reason, LastTransitionTime: began}
	}
	for _, tc := range []struct {
		name     string
		instance *string
		status   awsv1.AWSMachineStatus
		problem  string
		begun    bool
		failed   string
	}{
		{"When the status is empty, it should report nothing", nil, awsv1.AWSMachineStatus{}, "", false, ""},
		{"When EC2 provides no instance, it should report it and not fail the machine", nil,
			awsv1.AWSMachineStatus{Conditions: []contract.Condition{is("InstanceReady", "False", "InstanceProvisionFailed")}}, "InstanceProvisionFailed", false, ""},
		{"When the instance is starting, it should report the start", ptr.To("i-1"),
			awsv1.AWSMachineStatus{Conditions: []contract.Condition{is("InstanceReady", "False", "InstanceNotReady")}}, "InstanceNotReady", true, ""},
		{"When the instance runs without its security groups, it should report it", ptr.To("i-1"),
			awsv1.AWSMachineStatus{Ready: true, Conditions: []contract.Condition{is("InstanceReady", "True", ""), is("SecurityGroupsReady", "False", "SecurityGroupsSyncFailed")}},
			"SecurityGroupsSyncFailed", true, ""},
		{"When the instance was terminated externally, it should report the machine as failed", ptr.To("i-1"),
			awsv1.AWSMachineStatus{FailureReason: ptr.To("UpdateError"), Conditions: []contract.Condition{is("InstanceReady", "False", "InstanceTerminated")}},
			"UpdateError", true, "UpdateError"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			machine := &awsv1.AWSMachine{Spec: awsv1.AWSMachineSpec{InstanceID: tc.instance}, Status: tc.status}
			reason, message := (&Platform{}).MachineProblem(machine)
			g.Expect(reason).To(Equal(tc.problem))
			g.Expect(message == "").To(Equal(reason == ""))
			start := (&Platform{}).MachineStart(machine)
			g.Expect(start.Begun.IsZero()).To(Equal(!tc.begun))
			g.Expect(start.Reason).To(Equal(tc.failed))
		})
	}
	t.Run("When the provider reports an instance type's capacity, it should return it", func(t *testing.T) {
		capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		template := &awsv1.AWSMachineTemplate{Status: awsv1.AWSMachineTemplateStatus{Capacity: capacity}}
		NewWithT(t).Expect((&Platform{}).MachineCapacity(template).Resources).To(Equal(capacity))
	})
}

func TestOrphanedMachines(t *testing.T) {
	machine := func(name string, deleted bool) *awsv1.AWSMachine {
		m := &awsv1.AWSMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Finalizers: []string{awsv1.MachineFinalizer}},
			Spec: awsv1.AWSMachineSpec{InstanceID: ptr.To("i-" + name)}}
		if deleted {
			m.DeletionTimestamp = ptr.To(metav1.Now())
		}
		return m
	}
	for _, tc := range []struct {
		name      string
		condition hyperv1.ConditionType
		status    metav1.ConditionStatus
		left      int
		says      string
	}{
		{"When the identity provider is valid, it should wait for the provider", hyperv1.ValidAWSIdentityProvider, metav1.ConditionTrue, 2, "Waiting for AWS to terminate 2 instances;"},
		{"When it is unknown whether the identity provider is valid, it should wait for the provider", hyperv1.ValidAWSIdentityProvider, metav1.ConditionUnknown, 2, "Waiting for AWS to terminate 2 instances;"},
		{"When AWS rejects the cluster's identity, it should release deleted machines and name their instances", hyperv1.ValidAWSIdentityProvider, metav1.ConditionFalse, 1, "by hand: i-gone"},
		{"When the issuer's documents are not published, it should release deleted machines in the same way", hyperv1.ValidOIDCConfiguration, metav1.ConditionFalse, 1, "by hand: i-gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			cluster, c := testCluster(), testClient(t, machine("gone", true), machine("here", false))
			cluster.HostedCluster.Status.Conditions = []metav1.Condition{{Type: string(tc.condition), Status: tc.status}}
			why, err := (&Platform{}).OrphanedMachines(t.Context(), c, cluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(why).To(ContainSubstring(tc.says))
			machines := &awsv1.AWSMachineList{}
			g.Expect(c.List(t.Context(), machines)).To(Succeed())
			g.Expect(machines.Items).To(HaveLen(tc.left))
		})
	}
	t.Run("When the bucket rejects documents but the identity is still valid, it should wait for the provider", func(t *testing.T) {
		g := NewWithT(t)
		cluster, c := testCluster(), testClient(t, machine("gone", true))
		cluster.HostedCluster.Status.Conditions = []metav1.Condition{
			{Type: string(hyperv1.ValidOIDCConfiguration), Status: metav1.ConditionFalse}, {Type: string(hyperv1.ValidAWSIdentityProvider), Status: metav1.ConditionTrue},
		}
		why, err := (&Platform{}).OrphanedMachines(t.Context(), c, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(why).To(ContainSubstring("Waiting for AWS to terminate 1 instance"))
	})
	t.Run("When there are no machines, it should report nothing", func(t *testing.T) {
		g := NewWithT(t)
		why, err := (&Platform{}).OrphanedMachines(t.Context(), testClient(t), testCluster())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(why).To(BeEmpty())
	})
}

func TestFeatureGates(t *testing.T) {
	for version, want := range map[string]string{
		"4.14.30": "--feature-gates=EKS=false", "4.15.0": "--feature-gates=EKS=false", "4.16.0-rc.1": "--feature-gates=EKS=false,ROSA=false",
		"4.20.1": "--feature-gates=EKS=false,ROSA=false", "5.1.0": "--feature-gates=EKS=false,ROSA=false", "1.36.3": "--feature-gates=EKS=false,ROSA=false",
	} {
		t.Run("When the release is "+version+", the provider should get only feature gates that it supports", func(t *testing.T) {
			deployment := &appsv1.Deployment{}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"--v=4", "--feature-gates=EKS=false,ROSA=false"}}}
			gateFeatures(version, deployment)
			NewWithT(t).Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--v=4", want}))
		})
	}
}

func TestImages(t *testing.T) {
	for _, tc := range []struct {
		name, annotation, chosen, want string
	}{
		{"When no provider image is set, it should use the payload's image", "", "", ""},
		{"When the installer sets a provider image, it should use that one", "", "mine:1", "mine:1"},
		{"When the cluster sets a provider image, it should take precedence", "its:1", "mine:1", "its:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := (&Options{}).New(platform.Environment{ProviderImage: tc.chosen})
			g.Expect(err).NotTo(HaveOccurred())
			cluster := testCluster()
			cluster.HostedCluster.Annotations = map[string]string{hyperv1.ClusterAPIProviderAWSImage: tc.annotation}
			g.Expect(p.Provider(cluster).Images["aws-cluster-api-controllers"]).To(Equal(tc.want))
			g.Expect(p.Provider(cluster).Images["own-hypershift"]).To(Equal("operator:1"))
		})
	}
}
