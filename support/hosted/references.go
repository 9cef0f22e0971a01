// SPDX-License-Identifier: Apache-2.0

package hosted

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Reference is a field that names a user's Secret or ConfigMap, which the operator copies into the hosted namespace.
type Reference struct {
	// Use is the purpose of the copy.
	Use Use
	// ConfigMap reports that the field names a ConfigMap; otherwise it names a Secret.
	ConfigMap bool
	// Name points to the field. It is never empty.
	Name *string
}

// Copy returns the name of the copy.
func (r Reference) Copy() string { return CopyName(r.Use, *r.Name) }

// References returns the references of a HostedCluster to objects that are copied under names from CopyName. It does
// not return the pull secret, the SSH key, the trust bundle and the signing key of service accounts: their copies have
// fixed names.
func References(spec *hyperv1.HostedClusterSpec) []Reference {
	return references(spec.Configuration, spec.AuditWebhook, spec.SecretEncryption, &spec.Etcd)
}

// PointToCopies changes each reference in a user's spec to the name of the copy in the hosted namespace. The caller
// passes a deep copy.
func PointToCopies(spec *hyperv1.HostedClusterSpec) {
	for _, ref := range References(spec) {
		*ref.Name = ref.Copy()
	}
}

// UpgradeReferences changes references that an operator of version 0.1.0 wrote to the names of the copies. It changes
// only references whose copy the current spec (now) names. For the others, the operator keeps the copy of version
// 0.1.0.
func UpgradeReferences(spec, now *hyperv1.HostedControlPlaneSpec) {
	copies := map[string]bool{}
	for _, ref := range ControlPlaneReferences(now) {
		copies[*ref.Name] = true
	}
	for _, ref := range ControlPlaneReferences(spec) {
		if copies[ref.Copy()] {
			*ref.Name = ref.Copy()
		}
	}
}

// ControlPlaneReferences returns the references of a HostedControlPlane to copies of users' objects.
func ControlPlaneReferences(spec *hyperv1.HostedControlPlaneSpec) []Reference {
	return references(spec.Configuration, spec.AuditWebhook, spec.SecretEncryption, &spec.Etcd)
}

// Configuration returns the configuration as the HostedControlPlane has it: each reference has the name of the copy in
// the hosted namespace.
func Configuration(configuration *hyperv1.ClusterConfiguration) *hyperv1.ClusterConfiguration {
	spec := hyperv1.HostedClusterSpec{Configuration: configuration.DeepCopy()}
	PointToCopies(&spec)
	return spec.Configuration
}

func references(
	configuration *hyperv1.ClusterConfiguration, audit *corev1.LocalObjectReference,
	encryption *hyperv1.SecretEncryptionSpec, etcd *hyperv1.EtcdSpec,
) []Reference {
	var all []Reference
	add := func(use Use, name *string) {
		if *name != "" {
			all = append(all, Reference{Use: use, Name: name})
		}
	}
	local := func(use Use, ref *corev1.LocalObjectReference) {
		if ref != nil {
			add(use, &ref.Name)
		}
	}
	if configuration != nil {
		all = append(all, inConfiguration(configuration)...)
	}
	local(UseAuditWebhook, audit)
	if encryption != nil {
		if keys := encryption.AESCBC; keys != nil {
			local(UseEncryptionKey, &keys.ActiveKey)
			local(UseEncryptionKey, keys.BackupKey)
		}
		visit(reflect.ValueOf(encryption.KMS), func(name *string, _ bool) { add(UseKMSCredentials, name) })
	}
	if etcd.Unmanaged != nil {
		local(UseEtcdClient, &etcd.Unmanaged.TLS.ClientSecret)
	}
	if etcd.Managed != nil && etcd.Managed.AutomatedBackup != nil {
		backup := etcd.Managed.AutomatedBackup
		add(UseBackupKey, &backup.EncryptionKey.Name)
		if backup.Storage.S3 != nil {
			add(UseBackupStorage, &backup.Storage.S3.Credentials.Name)
		}
	}
	return all
}

// inConfiguration finds the references by their types, so that it also finds references that the API adds later.
func inConfiguration(configuration *hyperv1.ClusterConfiguration) []Reference {
	var hook *string
	if authentication := configuration.Authentication; authentication != nil &&
		authentication.WebhookTokenAuthenticator != nil {
		hook = &authentication.WebhookTokenAuthenticator.KubeConfig.Name
	}
	var all []Reference
	visit(reflect.ValueOf(configuration), func(name *string, configMap bool) {
		switch {
		case *name == "":
		case name == hook:
			all = append(all, Reference{Use: UseTokenWebhook, Name: name})
		default:
			all = append(all, Reference{Use: UseConfiguration, ConfigMap: configMap, Name: name})
		}
	})
	return all
}

// visit calls found for each reference to a Secret or ConfigMap below a pointer. It identifies references by the names
// of their Go types, of which OpenShift's API has several: SecretNameReference, ConfigMapNameReference,
// ClientSecretSecretReference and others. It skips component routes, whose Secrets users create in the guest.
func visit(value reflect.Value, found func(name *string, configMap bool)) {
	if kind := value.Type().Name(); value.Kind() == reflect.Struct && value.CanAddr() && isReference(kind) {
		if name := value.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String {
			found(name.Addr().Interface().(*string), strings.Contains(kind, "ConfigMap"))
			return
		}
	}
	if value.Type() == reflect.TypeFor[configv1.ComponentRouteSpec]() {
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			visit(value.Elem(), found)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				visit(value.Field(i), found)
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			visit(value.Index(i), found)
		}
	}
}

func isReference(kind string) bool {
	return kind == "LocalObjectReference" || strings.HasSuffix(kind, "Reference") &&
		(strings.Contains(kind, "Secret") || strings.Contains(kind, "ConfigMap"))
}
