package install

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/defaultingwebhook"
)

func allVerbs(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}
}

func read(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
}

// operatorRules are wide: the operator makes namespaces, and in them service accounts with rights of their own, for
// control planes that it does not know in advance.
func operatorRules() []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		allVerbs("", "configmaps", "configmaps/finalizers", "endpoints", "events", "namespaces", "nodes", "persistentvolumeclaims", "pods",
			"pods/log", "secrets", "serviceaccounts", "services"),
		read("", "persistentvolumes"),
		allVerbs("apps", "daemonsets", "deployments", "deployments/finalizers", "replicasets", "statefulsets"),
		read("storage.k8s.io", "storageclasses"),
		read("config.openshift.io", "*"),
		// Who may give rights away must have them, or may say so: rights of the payload's operators are not known here.
		allVerbs("rbac.authorization.k8s.io", "roles", "rolebindings", "clusterroles", "clusterrolebindings"),
		read("certificates.k8s.io", "certificatesigningrequests"),
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"approve", "sign"}},
		{
			APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"},
			ResourceNames: []string{defaultingwebhook.Name}, Verbs: []string{"get", "list", "watch", "update", "patch"},
		},
		{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	}
	for group, resources := range wholeGroups {
		rules = append(rules, allVerbs(group, resources...))
	}
	sortRules(rules)
	return rules
}

// wholeGroups are API groups of which the operator may do everything to the resources.
var wholeGroups = map[string][]string{
	"hypershift.openshift.io":                  {"*"},
	"certificates.hypershift.openshift.io":     {"*"},
	"scheduling.hypershift.openshift.io":       {"*"},
	"apiextensions.k8s.io":                     {"customresourcedefinitions", "customresourcedefinitions/status"},
	"batch":                                    {"*"},
	"coordination.k8s.io":                      {"leases"},
	"events.k8s.io":                            {"events"},
	"networking.k8s.io":                        {"networkpolicies"},
	"discovery.k8s.io":                         {"endpointslices", "endpointslices/restricted"},
	"policy":                                   {"poddisruptionbudgets"},
	"cluster.x-k8s.io":                         {"*"},
	"addons.cluster.x-k8s.io":                  {"*"},
	"bootstrap.cluster.x-k8s.io":               {"*"},
	"controlplane.cluster.x-k8s.io":            {"*"},
	"infrastructure.cluster.x-k8s.io":          {"*"},
	"ipam.cluster.x-k8s.io":                    {"*"},
	"runtime.cluster.x-k8s.io":                 {"*"},
	"capi-provider.agent-install.openshift.io": {"*"},
	"monitoring.coreos.com":                    {"*"},
	"operator.openshift.io":                    {"*"},
	"route.openshift.io":                       {"*"},
	"image.openshift.io":                       {"*"},
	"security.openshift.io":                    {"securitycontextconstraints"},
	"etcd.database.coreos.com":                 {"*"},
	"machine.openshift.io":                     {"*"},
	"kubevirt.io":                              {"virtualmachines", "virtualmachineinstances"},
	"snapshot.storage.k8s.io":                  {"volumesnapshots"},
	"admissionregistration.k8s.io":             {"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	"scheduling.k8s.io":                        {"priorityclasses"},
	"extensions.hive.openshift.io":             {"agentclusterinstalls"},
	"hive.openshift.io":                        {"clusterdeployments"},
	"secrets-store.csi.x-k8s.io":               {"secretproviderclasses"},
}

func (o *Options) rbac() []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.namespace, Name: operatorName}}
	ref := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}, Rules: operatorRules()},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: roleName}, Subjects: subjects, RoleRef: ref("ClusterRole", roleName)},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hypershift:extension-apiserver-authentication-reader"},
			Subjects:   subjects, RoleRef: ref("Role", "extension-apiserver-authentication-reader"),
		},
	}
}

func (o *Options) serviceAccount() *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: operatorName}}
	if len(o.pullSecret) > 0 {
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
	}
	return account
}
