// SPDX-License-Identifier: Apache-2.0

package api

import "strings"

// settingOrder lists the settings with their defaults, in the order of MAAS.
var settingOrder = []struct {
	name     string
	fallback any
}{
	{"maas_name", "maas"}, {"theme", ""}, {"kernel_opts", ""}, {"enable_http_proxy", true}, {"maas_proxy_port", 8000},
	{"use_peer_proxy", false}, {"prefer_v4_proxy", false}, {"http_proxy", ""}, {"default_dns_ttl", 30}, {"upstream_dns", ""},
	{"dnssec_validation", "auto"}, {"maas_internal_domain", "maas-internal"}, {"dns_trusted_acl", ""}, {"ntp_servers", "ntp.ubuntu.com"},
	{"ntp_external_only", false}, {"remote_syslog", ""}, {"maas_syslog_port", 5247}, {"network_discovery", "enabled"},
	{"active_discovery_interval", 10800}, {"default_osystem", "ubuntu"}, {"default_distro_series", ""}, {"default_min_hwe_kernel", ""},
	{"default_storage_layout", "flat"}, {"commissioning_distro_series", ""}, {"enable_third_party_drivers", true},
	{"windows_kms_host", ""}, {"enable_disk_erasing_on_release", false}, {"disk_erase_with_secure_erase", true},
	{"disk_erase_with_quick_erase", false}, {"boot_images_auto_import", true}, {"boot_images_no_proxy", false},
	{"curtin_verbose", true}, {"force_v1_network_yaml", false}, {"enable_analytics", true}, {"completed_intro", true},
	{"max_node_commissioning_results", 10}, {"max_node_testing_results", 10}, {"max_node_installation_results", 3},
	{"subnet_ip_exhaustion_threshold_count", 16}, {"release_notifications", true}, {"use_rack_proxy", true}, {"node_timeout", 30},
	{"prometheus_enabled", false}, {"prometheus_push_gateway", ""}, {"prometheus_push_interval", 60}, {"promtail_enabled", false},
	{"promtail_port", 5238}, {"enlist_commissioning", true}, {"maas_auto_ipmi_user", "maas"},
	{"maas_auto_ipmi_user_privilege_level", "ADMIN"}, {"maas_auto_ipmi_k_g_bmc_key", ""}, {"maas_auto_ipmi_cipher_suite_id", "3"},
	{"maas_auto_ipmi_workaround_flags", ""}, {"vcenter_server", ""}, {"vcenter_username", ""}, {"vcenter_password", ""},
	{"vcenter_datacenter", ""}, {"hardware_sync_interval", "15m"}, {"tls_cert_expiration_notification_enabled", false},
	{"tls_cert_expiration_notification_interval", 30}, {"session_length", 1209600}, {"auto_vlan_creation", true},
}

var settings, settingNames = func() (map[string]any, string) {
	byName := map[string]any{}
	var names []string
	for _, s := range settingOrder {
		byName[s.name] = s.fallback
		names = append(names, s.name)
	}
	return byName, strings.Join(names, ", ")
}()
