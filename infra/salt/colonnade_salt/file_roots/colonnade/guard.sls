{#- Fails the whole run, before any other state, when the pillar did not come from Colonnade.

    Salt refuses a run whose pillar carries `_errors`, but not one whose external pillar was skipped because its module
    could not be imported: such a run would be green without its data. The module's marker tells the two apart. -#}
{%- set marker = pillar.get('colonnade') %}
{%- if marker is mapping and marker.get('bridge') == 'ok' and '_errors' not in pillar %}
colonnade-guard:
  test.succeed_without_changes:
    - name: the pillar came from Colonnade
    - order: first
{%- else %}
colonnade-guard:
  test.fail_without_changes:
    - name: the pillar did not come from Colonnade; no state may run
    - failhard: True
    - order: first
{%- endif %}
