use super::{Sight, action, decimal, instance, list, ports};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use wharf_domain::capacity::{CpuTier, GpuDevice, Size};
use wharf_domain::ids::{Generation, InstanceId, NodeId, UserId};
use wharf_domain::instance::{BilledSize, Instance, Intent, Progress, ResourceType};
use wharf_domain::money::{Rate, Rates};
use wharf_domain::name::Name;
use wharf_domain::secret::{Encrypted, SecretText};
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;
use wharf_instances::InstanceView;

fn container() -> InstanceView {
    let size = Size {
        n_vcpus: 2,
        mem_gib: 4,
        disk_size_gib: 20,
    };
    let instance = Instance {
        id: InstanceId::parse("0f8fad5b-d9cb-469f-a165-70867728950e").unwrap(),
        seq: 1,
        version: 1,
        owner: UserId(1),
        name: Name::parse("calm-harbor-1234").unwrap(),
        resource_type: ResourceType::Container,
        flavor: "marimo".to_owned(),
        cpu_tier: CpuTier::GeneralPurpose,
        size,
        gpu_model: Some("H100".to_owned()),
        gpus: vec![GpuDevice {
            model: "H100".to_owned(),
            device: "nvidia.com/gpu=0".to_owned(),
        }],
        created_at: Timestamp(1_763_668_544_120),
        rates: Rates {
            vcpu: Rate(12_500_000),
            mem: Rate(300_000_001),
            disk: Rate(1),
            gpu: Rate(2_000_000_000),
        },
        password: Encrypted(Vec::new()),
        node: NodeId("local".to_owned()),
        ssh_host: "ssh.example.org".to_owned(),
        login_user: "user".to_owned(),
        ssh_port: 20_000,
        ssh: false,
        web_port: Some(30_000),
        lan_ipv4: Ipv4Addr::new(10, 80, 0, 2),
        lan_subnet: 0,
        public_ipv4: None,
        wan_ports: Vec::new(),
        intent: Intent::Run,
        generation: Generation(1),
        incarnation: 1,
        provisioned: true,
        failed: false,
        progress: Progress::Settled,
        deadline: None,
        resize: None,
        events: 0,
        ledger_entries: 0,
        last_event_at: Timestamp(0),
        billed: BilledSize {
            parts: InstanceState::Running.billed(),
            size,
        },
    };
    InstanceView {
        instance,
        owner_email: "me@example.org".into(),
        password: SecretText::new("xk7\"Rb2mQw"),
        web_url: Some("http://web.example.org:30000/".to_owned()),
        volumes: Vec::new(),
    }
}

fn machine() -> InstanceView {
    let mut view = container();
    view.web_url = None;
    let i = &mut view.instance;
    i.resource_type = ResourceType::Vm;
    (i.ssh, i.web_port, i.gpu_model) = (true, None, None);
    i.gpus.clear();
    i.rates.gpu = Rate(0);
    i.public_ipv4 = Some(Ipv4Addr::new(198, 51, 100, 7));
    i.wan_ports = vec![22, 443];
    i.intent = Intent::Stop;
    view
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_container_byte_for_byte() {
    let text = String::from_utf8(instance(&container(), Sight::Whole).unwrap().to_vec()).unwrap();
    let expected = concat!(
        r#"{"uuid":"0f8fad5b-d9cb-469f-a165-70867728950e","name":"calm-harbor-1234","#,
        r#""lan_ipv4":"10.80.0.2","state":"running","n_vcpus":2,"mem_gib":4.0,"#,
        r#""disk_size_gib":20,"n_gpus":1,"gpu_model":"H100","wan_ssh_port":20000,"#,
        r#""resource_type":"container","flavor":"marimo","owner_email":"me@example.org","#,
        r#""public_ipv4":null,"original_service_password":"xk7\"Rb2mQw","#,
        r#""created_at":"2025-11-20T19:55:44.120Z","vcpu_cost_hourly_usd":0.0125,"#,
        r#""ram_cost_hourly_usd":0.300000001,"storage_cost_hourly_usd":1e-9,"#,
        r#""gpu_cost_hourly_usd":2.0,"cpu_tier":"general-purpose","ssh_command":null,"#,
        r#""webapp_url":"http://web.example.org:30000/","wan_ports":[],"volumes":[]}"#,
    );
    assert_eq!(text, expected);
}

#[test]
fn a_stopped_machine_and_the_list() {
    let one = parse(&instance(&machine(), Sight::Whole).unwrap());
    assert_eq!(one["state"], "shut_off");
    assert_eq!(one["ssh_command"], "ssh -p 20000 user@ssh.example.org");
    assert_eq!(
        (&one["webapp_url"], &one["gpu_model"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(one["gpu_cost_hourly_usd"].to_string(), "0.0");
    assert_eq!(one["public_ipv4"], "198.51.100.7");
    let all = parse(&list(&[container(), machine()], Sight::Whole).unwrap());
    assert_eq!(all[1]["wan_ports"], json!([22, 443]));
    assert!(
        all.as_array()
            .unwrap()
            .iter()
            .all(|i| i.get("owner_email").is_none())
    );
    assert_eq!(list(&[], Sight::Whole).unwrap(), "[]");
}

#[test]
fn answers_are_what_the_document_says() {
    let document = crate::schema::ApiDocument::read().unwrap();
    let view = machine();
    for (schema, body) in [
        ("Instance", instance(&view, Sight::Whole)),
        ("Instance", instance(&container(), Sight::Whole)),
        (
            "InstanceList",
            list(std::slice::from_ref(&view), Sight::Whole),
        ),
        (
            "ActionResultOrState",
            action(&view, Sight::Whole, "stopped", "shut_off"),
        ),
        (
            "PortsResultOrState",
            ports(&view, Sight::Whole, String::new()),
        ),
    ] {
        let validator = jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(&document.schema(schema).unwrap())
            .unwrap();
        let body = parse(&body.unwrap());
        let problems: Vec<_> = validator
            .iter_errors(&body)
            .map(|e| e.to_string())
            .collect();
        assert!(problems.is_empty(), "{problems:?} in {body}");
    }
}

/// A rate's digits survive: what is written is the decimal that the rate is.
#[test]
fn rates_are_exact_decimals() {
    for n in (0..200_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_000_000_001) {
        let text = serde_json::to_string(&decimal(Rate(n))).unwrap();
        if !text.contains('e') {
            assert_eq!(text, Rate(n).to_decimal());
        }
        let back: f64 = text.parse().unwrap();
        assert_eq!(
            format!("{back:.9}"),
            format!("{}.{:09}", n / 1_000_000_000, n % 1_000_000_000)
        );
    }
}
